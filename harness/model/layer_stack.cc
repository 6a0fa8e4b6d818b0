// Layers and the last layer norm of pre-norm (Xiong et al. 2020, arXiv:2002.04745); see
// layer_stack.h.
#include "harness/model/layer_stack.h"

#include <utility>

#include "core/ops/ops.h"
#include "harness/model/handed_on.h"
#include "harness/model/weights.h"

namespace attn {

LayerStack::LayerStack(const LayerConfig& layer, int64_t layers, uint64_t seed) {
  for (int64_t i = 0; i < layers; ++i) {
    LayerConfig own = layer_config_at(layer, i);
    own.seed = rng(seed, "layer", static_cast<uint64_t>(i)).bits();
    layers_.push_back(std::make_unique<Layer>(own));
  }
  if (layer.norm != Norm::pre) return;
  gain_ = constant_weight("norm.gain", {layer.width}, 1);
  bias_ = constant_weight("norm.bias", {layer.width}, 0);
}

Var LayerStack::forward(Var x, const std::vector<int64_t>& lengths, Rng* dropout,
                        const std::shared_ptr<const Edges>& edges) const {
  HandedOn handed;
  for (const auto& layer : layers_) x = layer->forward(x, lengths, dropout, edges, &handed);
  return gain_.value.defined() ? layer_norm(x, gain_.value, bias_.value) : x;
}

std::vector<Weight> LayerStack::weights() const {
  std::vector<Weight> all;
  for (size_t i = 0; i < layers_.size(); ++i)
    for (Weight& weight : layers_[i]->weights())
      all.push_back({fmt::format("layers.{}.{}", i, weight.name), std::move(weight.value),
                     weight.learned, weight.moved});
  if (gain_.value.defined()) all.insert(all.end(), {gain_, bias_});
  return all;
}

}  // namespace attn
