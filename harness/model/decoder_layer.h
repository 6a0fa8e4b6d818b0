// One decoder layer: masked self-attention, cross-attention over the encoder's output and a
// feed-forward, each with its residual and norm.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/model/residual_blocks.h"

namespace attn {

class DecoderLayer {
 public:
  // `self` is causal, `cross` is not; what is not about the attention is taken from `self`.
  DecoderLayer(const LayerConfig& self, const LayerConfig& cross);
  // x [batch, len, width], memory [batch, kv_len, width] of which batch entry b has lengths[b] rows
  // (empty: all) -> [batch, len, width]. `dropout` null: evaluation.
  Var forward(const Var& x, const Var& memory, const std::vector<int64_t>& lengths,
              Rng* dropout) const;

  // What decoding keeps: the state of self-attention, and the memory's keys and values.
  struct State {
    std::unique_ptr<Decoder> self;
    AttentionBlock::KeysValues memory;
  };
  State start(const Var& memory, int64_t capacity) const;  // for `capacity` positions
  // forward() of the position after those stepped through, x [batch, 1, width]. Not recorded.
  Var step(const Var& x, State& state, const std::vector<int64_t>& lengths) const;

  std::vector<Weight> weights() const;  // those of cross-attention begin with "cross."
  const Attention& self_attention() const { return self_.attention(); }

 private:
  AttentionBlock self_, cross_;
  FeedForwardBlock feed_forward_;
};

}  // namespace attn
