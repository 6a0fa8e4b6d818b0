// One decoder layer: causal self-attention, cross-attention over the output of the encoder, and a
// feed-forward block, each with a residual connection and layer norm.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/model/residual_blocks.h"

namespace attn {

class DecoderLayer {
 public:
  // `self` is causal, `cross` is not. The feed-forward block has the settings of `self`.
  DecoderLayer(const LayerConfig& self, const LayerConfig& cross);
  // x [batch, len, width], memory [batch, kv_len, width] -> [batch, len, width]. Batch entry b has
  // lengths[b] valid rows of memory (empty `lengths`: all are valid). Null `dropout`: evaluation.
  // `handed` as AttentionBlock::forward, of self-attention.
  Var forward(const Var& x, const Var& memory, const std::vector<int64_t>& lengths, Rng* dropout,
              HandedOn* handed = nullptr) const;

  // The state of decoding: of self-attention, and the keys and values of the memory.
  struct State {
    std::unique_ptr<Decoder> self;
    AttentionBlock::KeysValues memory;
    Tensor before = {};  // see FeedForwardBlock::step
  };
  State start(const Var& memory, int64_t capacity) const;  // for at most `capacity` positions
  // forward() of the next position, x [batch, 1, width]. Records no gradients.
  Var step(const Var& x, State& state, const std::vector<int64_t>& lengths,
           HandedOn* handed = nullptr) const;

  std::vector<Weight> weights() const;  // names of cross-attention begin with "cross."
  const FeedForwardBlock& feed_forward() const { return feed_forward_; }
  const Attention& self_attention() const { return self_.attention(); }

 private:
  AttentionBlock self_, cross_;
  FeedForwardBlock feed_forward_;
};

}  // namespace attn
