// One pass over the directions, which are few beside the positions.
#include "variants/features/scaled_directions.h"

#include "core/base/check.h"

namespace attn {

Var scaled_directions(const Tensor& w, const Var& scales) {
  const int64_t count = w.dim(1), dim = w.dim(2);
  ATTN_CHECK(scales.shape() == Shape({w.dim(0), dim}), "scales {} do not fit directions {}",
             scales.shape().str(), w.shape().str());
  const Tensor omega(w.shape()), by = scales.value();
  for (int64_t row = 0; row < w.dim(0) * count; ++row)
    for (int64_t c = 0; c < dim; ++c)
      omega[row * dim + c] = by[row / count * dim + c] * w[row * dim + c];
  if (!recording({scales})) return Var(omega);
  return custom_op(omega, {scales}, [w, count, dim](const Tensor& grad, std::span<Tensor> grads) {
    for (int64_t row = 0; row < w.dim(0) * count; ++row)
      for (int64_t c = 0; c < dim; ++c)
        grads[0][row / count * dim + c] += grad[row * dim + c] * w[row * dim + c];
  });
}

}  // namespace attn
