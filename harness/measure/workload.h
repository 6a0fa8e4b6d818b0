// What is timed and weighed: one variant at one shape, as bare attention, as an encoder layer, or
// as a whole model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "variants/attention.h"

namespace attn {

enum class Mode { forward, train };  // train: forward and backward
enum class ScopeKind { attention, layer, model };
std::string to_string(Mode mode);
std::string to_string(ScopeKind scope);

struct WorkloadSpec {
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> params;  // as given
  int64_t length = 512, batch = 1, heads = 4, head_dim = 64;
  Mode mode = Mode::forward;
  ScopeKind scope = ScopeKind::attention;
  bool causal = false;
  int threads = 1;
  uint64_t seed = 0;
};

// Inputs N(0, 1) and weights are made once; run() does one pass (inputs that require gradients in
// mode train).
class Workload {
 public:
  explicit Workload(const WorkloadSpec& spec);
  ~Workload();
  void run();
  double flops() const;  // by formula, of one run(): the backward of dense layers counts twice
  const Attention& attention() const;  // scope attention only
  const Cost& attention_cost() const;  // declared, of one attention at this shape
  int64_t layers() const;              // attentions in one run(): 2 at scope model, 1 elsewhere
  const WorkloadSpec& spec() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
