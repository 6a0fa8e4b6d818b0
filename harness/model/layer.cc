// One encoder layer: two blocks in sequence. Vaswani et al. 2017, arXiv:1706.03762, section 3.1.
// The cost is that of the blocks.
#include "harness/model/layer.h"

#include "core/base/check.h"

namespace attn {

Layer::Layer(const LayerConfig& config)
    : width_(config.width), causal_(config.causal), attention_(config, ""), feed_forward_(config) {}

Var Layer::forward(const Var& x, const std::vector<int64_t>& lengths, Rng* dropout,
                   const std::shared_ptr<const Edges>& edges, HandedOn* handed) const {
  ATTN_CHECK(x.shape().rank() == 3 && x.dim(2) == width_,
             "a layer of width {} got an input of shape {}", width_, x.shape().str());
  return feed_forward_.forward(
      attention_.forward(x, {}, {causal_, lengths, edges}, dropout, handed), dropout);
}

std::vector<Weight> Layer::weights() const {
  std::vector<Weight> all = attention_.weights();
  for (Weight& weight : feed_forward_.weights()) all.push_back(weight);
  return all;
}

}  // namespace attn
