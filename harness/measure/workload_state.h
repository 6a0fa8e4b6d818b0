// What a workload holds between its passes. Private to harness/measure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/workload.h"
#include "harness/measure/workload_inputs.h"
#include "harness/model/encoder.h"
#include "variants/api/carrying.h"

namespace attn {

struct WorkloadState {
  explicit WorkloadState(const WorkloadSpec& given);

  // workload_state.cc
  void run();
  void pass();             // as run(), of the inputs as they are
  Var forward() const;     // recorded for gradients unless under NoGrad
  double counted_flops();  // of one run, counted in one more
  // Keys or values for every query head; the same where each has its own.
  Var repeated(const Var& x) const;
  Tensor repeated(const Tensor& x) const;
  BFloat16Tensor repeated(const BFloat16Tensor& x) const;
  // What run() asks for the rows of x alone; null: an attention, or a decoder, of q, k and v.
  const Mixer* mixer() const;

  // seen_passes.cc
  std::vector<SeenPass> seen();
  SeenPass seen(SeenToken which);

  WorkloadSpec spec;
  std::optional<Cost> cost;       // declared, of one attention; a stack has none
  std::optional<Cost> total;      // of all layers
  std::optional<double> counted;  // FLOPs, where none are declared
  int64_t runs = 0;
  std::unique_ptr<Attention> attention;
  std::unique_ptr<Layer> layer;
  std::unique_ptr<Encoder> model;
  std::unique_ptr<Decoder> decoder;  // of all positions but the last, mode decode
  std::vector<Var> inputs;
  Var received;                                // beside x, where spec.receives
  std::vector<Var> gates;                      // of the attention, at scope attention
  std::vector<Tensor> step_gates;              // the same, mode decode
  std::vector<BFloat16Tensor> rounded_inputs;  // in place of them, in bfloat16
  Batch batch;
  ChangingRow<real> changing;
  ChangingRow<BFloat16> changing_rounded;
  Tensor out;                       // mode decode
  BFloat16Tensor rounded_out;       // in place of it, in bfloat16
  std::vector<real> first_answers;  // of the first two runs in mode decode
  Tensor answer;                    // of the last pass in the other modes
  BFloat16Tensor rounded_answer;    // in place of it, in bfloat16
  Tensor seed;                      // gradient of the output, mode train
  std::vector<Var> leaves;          // that get a gradient, mode train
  std::vector<std::string> leaf_names;
  bool is_watched = false;
  std::vector<AttentionPass> watched;  // of one pass of a layer or a model

 private:
  std::unique_ptr<Attention> make_attention(const VariantInfo& variant,
                                            const std::map<std::string, ParamValue>& params) const;
  std::optional<Cost> declared_cost(const Attention& of, int64_t kv_heads) const;
  std::optional<Cost> total_cost() const;  // FLOPs and bytes of state; nullopt: one declares none
  LayerConfig watched_config();
  void make_inputs();
  void make_changing_row();
  void make_decoder();
  void make_leaves();
  void forward_rounded();
  void step();
  SeenPass seen_attention() const;
  struct Held;  // keys, values, queries and gates of a decoder
  void make_held();
  std::shared_ptr<Held> held;
};

}  // namespace attn
