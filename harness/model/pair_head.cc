// [x1, x2, x1·x2, x1−x2] through two hidden layers with ReLU, the second half as wide; see
// pair_head.h. Time O(size · width · hidden).
#include "harness/model/pair_head.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/ops/ops.h"

namespace attn {

PairHead::PairHead(int64_t width, int64_t hidden, int64_t classes, uint64_t seed) {
  const std::array<int64_t, 4> sizes = {4 * width, hidden, std::max<int64_t>(1, hidden / 2),
                                        classes};
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    weights_.push_back(glorot_weight(fmt::format("head.{}", i), sizes[i], sizes[i + 1], seed));
    weights_.push_back(constant_weight(fmt::format("head_bias.{}", i), {sizes[i + 1]}, 0));
  }
}

Var PairHead::forward(const Var& x) const {
  const int64_t size = x.dim(0) / 2, width = x.dim(1);
  const Var both = reshape(x, {size, 2 * width});
  const Var first = slice(both, 1, 0, width), second = slice(both, 1, width, 2 * width);
  const std::array<Var, 3> parts = {both, multiply(first, second), subtract(first, second)};
  Var hidden = concat(parts, 1);  // [size, 4 · width]
  for (size_t i = 0; i < weights_.size(); i += 2) {
    if (i > 0) hidden = relu(hidden);
    hidden = linear(hidden, weights_[i].value, weights_[i + 1].value);
  }
  return hidden;
}

std::vector<Weight> PairHead::weights() const { return weights_; }

}  // namespace attn
