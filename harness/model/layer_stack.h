// Encoder layers one after the other, and the last layer norm that pre-norm asks for: what an
// encoder does between its embedding and its head. Costs what its layers cost.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/model/layer.h"

namespace attn {

class LayerStack {
 public:
  // `layer` is that of every layer but for its seed, which is drawn from `seed`, and of a stack of
  // several variants but for the variant, see layer_config_at().
  LayerStack(const LayerConfig& layer, int64_t layers, uint64_t seed);
  // x [batch, len, width] -> the same shape. `lengths`, `edges` and `dropout` as Layer::forward.
  Var forward(Var x, const std::vector<int64_t>& lengths = {}, Rng* dropout = nullptr,
              const std::shared_ptr<const Edges>& edges = {}) const;
  std::vector<Weight> weights() const;  // layers.0.…, layers.1.…, norm.gain, norm.bias
  const std::vector<std::unique_ptr<Layer>>& layers() const { return layers_; }

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
  Weight gain_, bias_;  // [width], pre-norm only
};

}  // namespace attn
