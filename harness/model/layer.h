// One encoder layer: multi-head attention with W_q, W_k, W_v, W_o and a GELU feed-forward,
// residuals, layer norm.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "variants/attention.h"

namespace attn {

enum class Norm { pre, post };

struct LayerConfig {
  const VariantInfo* variant = nullptr;
  std::map<std::string, ParamValue> variant_params;  // as given; defaults are filled in
  int64_t width = 64;                                // d_model
  int64_t heads = 2;                                 // head_dim = width / heads
  int64_t feed_forward = 256;                        // hidden width
  int64_t max_len = 1;                               // longest sequence the attention sees
  bool causal = false;
  Norm norm = Norm::pre;
  double dropout = 0;  // on the outputs of attention and feed-forward
  uint64_t seed = 0;
};

class Layer {
 public:
  explicit Layer(const LayerConfig& config);
  ~Layer();
  // x [batch, len, width] -> the same shape. `lengths` as Mask::kv_lengths. `dropout` null:
  // evaluation.
  Var forward(const Var& x, const std::vector<int64_t>& lengths, Rng* dropout = nullptr) const;
  std::vector<Weight> weights() const;
  const Attention& attention() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attn
