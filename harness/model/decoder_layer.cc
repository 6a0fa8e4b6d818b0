// One decoder layer: three blocks in sequence. Vaswani et al. 2017, arXiv:1706.03762, section 3.1.
// The cost is that of the blocks; a step has the cost of one position.
#include "harness/model/decoder_layer.h"

#include "core/base/check.h"

namespace attn {

DecoderLayer::DecoderLayer(const LayerConfig& self, const LayerConfig& cross)
    : self_(self, ""), cross_(cross, "cross."), feed_forward_(self) {
  ATTN_CHECK(self.causal && !cross.causal,
             "a decoder's self-attention is causal and its cross-attention is not");
}

Var DecoderLayer::forward(const Var& x, const Var& memory, const std::vector<int64_t>& lengths,
                          Rng* dropout, HandedOn* handed) const {
  const Var attended = self_.forward(x, {}, {.causal = true}, dropout, handed);
  const Var informed = cross_.forward(attended, memory, {false, lengths}, dropout);
  return feed_forward_.forward(informed, dropout);
}

DecoderLayer::State DecoderLayer::start(const Var& memory, int64_t capacity) const {
  return {self_.decoder(memory.dim(0), capacity), cross_.project(memory), {}};
}

Var DecoderLayer::step(const Var& x, State& state, const std::vector<int64_t>& lengths,
                       HandedOn* handed) const {
  const Var attended = self_.step(x, *state.self, handed);
  const Var informed = cross_.answer(attended, state.memory, {false, lengths});
  return feed_forward_.step(informed, state.before);
}

std::vector<Weight> DecoderLayer::weights() const {
  std::vector<Weight> all = self_.weights();
  for (const auto& weights : {cross_.weights(), feed_forward_.weights()})
    all.insert(all.end(), weights.begin(), weights.end());
  return all;
}

}  // namespace attn
