// What is timed and weighed: one variant at one shape, as bare attention, as an encoder layer, or
// as a whole model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "variants/api/variant_info.h"

namespace attn {

// train: forward and backward; decode: one token, the last of `length`, from a state of the others
enum class Mode { forward, train, decode };
enum class ScopeKind { attention, layer, model };
std::string to_string(Mode mode);
std::string to_string(ScopeKind scope);

struct WorkloadSpec {
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> params;  // as given
  int64_t length = 512, batch = 1, heads = 4, head_dim = 64;
  Mode mode = Mode::forward;
  ScopeKind scope = ScopeKind::attention;
  bool causal = false;  // mode decode: true
  int threads = 1;
  uint64_t seed = 0;
};

// Why this cannot run (an error of the workload, a reason to skip for a sweep); nullopt: it can.
std::optional<std::string> why_not(const WorkloadSpec& spec);

// Mode decode: positions that are appended to the state at a time, and the bytes of the keys and
// values that are made for it.
int64_t prefill_positions(const WorkloadSpec& spec);
int64_t prefill_bytes(const WorkloadSpec& spec);

// Inputs N(0, 1) and weights are made once; run() does one pass (inputs that require gradients in
// mode train; every time the same token in mode decode).
class Workload {
 public:
  explicit Workload(const WorkloadSpec& spec);
  ~Workload();
  void run();
  // Of one run(), by formula: the backward of dense layers counts twice. Where the variant declares
  // no cost, as one more run() counts them; a step of decoding is declared by its decoder.
  double flops() const;
  bool declares_cost() const;  // false: flops() are counted
  // By formula, that one run() must move; nullopt where none applies: mode train, other scopes, a
  // variant that declares no cost.
  std::optional<double> bytes() const;
  const Attention& attention() const;  // scope attention only
  // Declared, of one attention at this shape; nullopt where none is.
  const std::optional<Cost>& attention_cost() const;
  // Of all layers: by formula, in mode decode as held. Where the variant declares no cost, what a
  // decoder made for it holds, and nullopt where there is none.
  std::optional<int64_t> state_bytes() const;
  int64_t layers() const;         // attentions in one run(): 2 at scope model, 1 elsewhere
  const Tensor& decoded() const;  // [batch, heads, 1, head_dim] of the last run(), mode decode
  const WorkloadSpec& spec() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
