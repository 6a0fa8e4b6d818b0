// gelu((x + p) · up) · down with x a sequence's vector and p a position's; see unfold_head.h. Since
// (x + p) · up = x · up + p · up, the first product costs (size + length) · width · hidden.
#include "harness/model/unfold_head.h"

#include "core/ops/ops.h"

namespace attn {
namespace {

// Of the size of a normalised vector's entries, so that position and content weigh the same.
constexpr double kPositionScale = 1;

}  // namespace

UnfoldHead::UnfoldHead(int64_t width, int64_t hidden, int64_t length, int64_t classes,
                       uint64_t seed)
    : positions_(normal_weight("unfold.positions", {length, width}, seed, kPositionScale)),
      up_(glorot_weight("unfold.up", width, hidden, seed)),
      up_bias_(constant_weight("unfold.up_bias", {hidden}, 0)),
      down_(glorot_weight("unfold.down", hidden, classes, seed)),
      down_bias_(constant_weight("unfold.down_bias", {classes}, 0)) {}

Var UnfoldHead::forward(const Var& x) const {
  const int64_t size = x.dim(0), length = positions_.value.dim(0), hidden = up_.value.dim(1);
  const Var content = linear(x, up_.value, {});                            // [size, hidden]
  const Var places = linear(positions_.value, up_.value, up_bias_.value);  // [length, hidden]
  const Var every = matmul(Var(Tensor::full({length, 1}, 1)),
                           reshape(content, {size, 1, hidden}));  // [size, length, hidden]
  const Var both = add(reshape(every, {1, size, length, hidden}), places);
  return linear(reshape(gelu(both), {size, length, hidden}), down_.value, down_bias_.value);
}

std::vector<Weight> UnfoldHead::weights() const {
  return {positions_, up_, up_bias_, down_, down_bias_};
}

}  // namespace attn
