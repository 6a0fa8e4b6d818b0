// One encoder layer: multi-head attention with W_q, W_k, W_v, W_o, or a mixer with none of them,
// and a GELU feed-forward, residuals, layer norm.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/model/residual_blocks.h"

namespace attn {

class Layer {
 public:
  explicit Layer(const LayerConfig& config);
  // x [batch, len, width] -> the same shape. `lengths` and `edges` as in Mask. `dropout` null:
  // evaluation.
  Var forward(const Var& x, const std::vector<int64_t>& lengths, Rng* dropout = nullptr,
              const std::shared_ptr<const Edges>& edges = {}) const;
  std::vector<Weight> weights() const;
  const Attention& attention() const { return attention_.attention(); }

 private:
  int64_t width_;
  bool causal_;
  AttentionBlock attention_;
  FeedForwardBlock feed_forward_;
};

}  // namespace attn
