// One encoder layer: multi-head attention with W_q, W_k, W_v, W_o, or a mixer without them, and a
// feed-forward block, with GELU unless the variant has its own, each with a residual connection and
// layer norm.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/model/residual_blocks.h"

namespace attn {

class Layer {
 public:
  explicit Layer(const LayerConfig& config);
  // x [batch, len, width] -> the same shape. `lengths` and `edges` as kv_lengths and edges of Mask.
  // Null `dropout`: evaluation. `handed` as AttentionBlock::forward.
  Var forward(const Var& x, const std::vector<int64_t>& lengths, Rng* dropout = nullptr,
              const std::shared_ptr<const Edges>& edges = {}, HandedOn* handed = nullptr) const;
  std::vector<Weight> weights() const;
  const FeedForwardBlock& feed_forward() const { return feed_forward_; }
  const Attention& attention() const { return attention_.attention(); }

 private:
  int64_t width_;
  bool causal_;
  AttentionBlock attention_;
  FeedForwardBlock feed_forward_;
};

}  // namespace attn
