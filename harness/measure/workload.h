// A workload for measurements of time and memory: one variant at one shape, as attention alone, as
// an encoder layer, or as a model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/mixed_batch.h"
#include "variants/api/variant_info.h"

namespace attn {

struct LayerConfig;    // harness/model/residual_blocks.h
struct WorkloadState;  // workload_state.h

// train: forward and backward; decode: a step of the last of `length` tokens after prefill; serve:
// a call of WorkloadSpec::served, and those that follow (harness/measure/serving.h)
enum class Mode { forward, train, decode, serve };
// Whether a decoder answers, from what it has cached.
constexpr bool decodes(Mode mode) { return mode == Mode::decode || mode == Mode::serve; }
enum class ScopeKind { attention, layer, model };
std::string to_string(Mode mode);
std::string to_string(ScopeKind scope);

inline constexpr int64_t kModelLayers = 2;  // of scope model, where nothing else is asked for

struct WorkloadSpec {
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> params;  // as given
  int64_t length = 512, batch = 1, heads = 4, head_dim = 64;
  // Heads of keys and values, each shared by heads / kv_heads query heads; 0: as many as heads.
  // Shazeer 2019, arXiv:1911.02150; Ainslie et al. 2023, arXiv:2305.13245.
  int64_t kv_heads = 0;
  Dtype dtype = Dtype::float32;  // of q, k, v, the output and, where the variant can, the state
  CacheType cache = CacheType::float32;  // of mode decode, and of fidelity
  Mode mode = Mode::forward;
  ScopeKind scope = ScopeKind::attention;
  int64_t layers = kModelLayers;  // at scope model
  int64_t layer = 0;              // at scope attention: which layer of a model it stands for
  bool receives = false;     // there too: that layer receives what one before it hands on, N(0, 1)
  int64_t feed_forward = 0;  // hidden width, at scopes layer and model; 0: four times the width
  bool causal = false;       // modes decode and serve: true
  MixedBatch served = {};    // of mode serve, whose length and batch are of it
  // Of modes forward and train: lengths of `batch` sequences, of which the longest is `length`,
  // that are packed without padding (packed_pass.h); empty: all are of `length`.
  std::vector<int64_t> packed = {};
  int threads = 1;
  uint64_t seed = 0;
  uint64_t draw = 0;  // which inputs of the seed: those of each draw are others

  int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  int64_t group() const { return heads / key_heads(); }  // query heads that share a head of keys
  AttentionShape shape() const;                          // q_len = kv_len = length
  Params chosen() const;                                 // `params`, and defaults for the others
  uint64_t input_seed() const;                           // of `seed` and `draw`
};

// What an attention read in a pass and what it answered. Of a decoded token, `out` is of the last
// position alone.
struct SeenPass {
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> params;  // as given
  const Attention* attention = nullptr;
  Tensor q, k, v;  // [batch, heads, len, head_dim], each query head with its own keys and values
  std::vector<Tensor> gates;  // [batch, heads, len, width]
  Tensor out;                 // as q; of a decoded token, one row a head
  bool causal = false;
  bool widened = false;               // in bfloat16: read in float32
  Tensor received = {}, handed = {};  // [batch, rows, numbers], as of AttentionPass
};

// Tokens that mode decode answered after the same positions. A cache has forgotten the first when
// it answers the second; a sum holds both.
enum class SeenToken { first, second, second_after_first, last };

// A gradient of a pass in mode train.
struct LeafGradient {
  std::string name;  // "q", "k", "v", "x", "received", the name of a gate or of a weight
  Tensor value, gradient;
};

// A pass that can go backward again with another gradient of its output.
class GradientPass {
 public:
  virtual ~GradientPass() = default;
  virtual const WorkloadSpec& spec() const = 0;
  virtual const Tensor& output_gradient() const = 0;
  virtual std::vector<LeafGradient> gradients() const = 0;  // of the last pass
  // With the inputs of the last pass.
  virtual void run_again(const Tensor& output_gradient) = 0;
};

// The reason why the workload cannot run; nullopt if it can. The constructor of Workload throws
// this reason; a sweep skips the cell.
std::optional<std::string> why_not(const WorkloadSpec& spec);
// Why scope, mode and numbers cannot go together, for a stack or for any variant; nullopt: they
// can.
std::optional<std::string> why_contradictory(const WorkloadSpec& spec);

// The encoder layer of scopes layer and model, whose feed-forward is four times as wide as the
// model (Vaswani et al. 2017, section 3.3).
LayerConfig layer_config(const WorkloadSpec& spec);

// For mode decode: the number of positions that one Decoder::extend() appends, and the bytes of
// their keys, values and gates.
int64_t prefill_positions(const WorkloadSpec& spec);
int64_t prefill_bytes(const WorkloadSpec& spec);

// Inputs N(0, 1), gates (random_gates) and weights are made once. run() does one pass: in mode
// train with gradients of the inputs, in mode decode of one token after the same positions. Before
// each pass the last row of one input changes (of a decoded token, all of it), so that an answer
// that was kept from an earlier pass is wrong. Keys and values have kv_heads heads; a pass repeats
// them for the query heads, as the multi-head layer does. A decoder keeps kv_heads heads in its
// state where the variant can. In bfloat16 inputs are rounded once, before any pass; what a variant
// widens to float32 is part of a pass.
class Workload final : public GradientPass {
 public:
  explicit Workload(const WorkloadSpec& spec);
  ~Workload() override;
  void run();
  // What one pass answers, recorded for gradients unless under NoGrad; float32 alone.
  Var forward() const;
  const std::vector<Var>& inputs() const;  // x, or q, k and v; none at scope model or in bfloat16
  // Of the attention, at scope attention: of all positions, or of the one that mode decode answers.
  const std::vector<Var>& gates() const;
  // In bfloat16: whether the variant, or in mode decode its decoder, widens to float32 first.
  bool widens() const;
  // FLOPs of one run() by formula; the backward pass of dense layers counts twice the forward pass.
  // In mode decode, by the formula of the decoder. If the variant declares no cost, counted in one
  // more run().
  double flops() const;
  bool declares_cost() const;  // false: flops() are counted
  // The bytes that one run() must move, by formula, those of repeated keys and values included;
  // nullopt in mode train, in other scopes than attention, and if the variant declares no cost.
  std::optional<double> bytes() const;
  const Attention& attention() const;  // scope attention only
  // The declared cost of one attention at this shape, at scope attention with the repeated keys and
  // values; nullopt if the variant declares none.
  const std::optional<Cost>& attention_cost() const;
  // Bytes of the decode states of all layers: by formula, or in mode decode as allocated. If the
  // variant declares no cost, as allocated by a decoder; nullopt if there is no decoder.
  std::optional<int64_t> state_bytes() const;
  int64_t layers() const;  // 1 but at scope model
  Tensor decoded() const;  // [batch, heads, 1, head_dim] of the last run(), mode decode
  // Frees the answer of the last run(), which is kept until the next.
  void forget();

  // What attentions saw in the last run(). At scope layer or model it runs once more, with the same
  // inputs, watches, and is an Error where the answer is another one. Not of mode decode.
  std::vector<SeenPass> seen();
  // Of mode decode, after two runs or more.
  SeenPass seen(SeenToken which);
  // Of the last run() in mode train at scope attention.
  std::vector<LeafGradient> gradients() const override;
  // The gradient of the output with which run() goes backward.
  const Tensor& output_gradient() const override;
  void run_again(const Tensor& output_gradient) override;
  const WorkloadSpec& spec() const override;

 private:
  std::unique_ptr<WorkloadState> state_;
};

}  // namespace attn
