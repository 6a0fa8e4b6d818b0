// One row over its size, for the op and the decoders of row_scale.h. Private to them. O(dim).
#pragma once

#include <cmath>
#include <cstdint>

#include "core/simd/row_ops.h"
#include "core/tensor/tensor.h"
#include "variants/normalisers/row_scale.h"

namespace attn {

// A gain as numbers of a head: [1, dim], [heads, 1] or undefined.
struct Gain {
  Tensor values;
  int64_t head_step = 0, step = 0;

  explicit Gain(const Tensor& gain)
      : values(gain.defined() ? gain : Tensor::full({1, 1}, 1)),
        head_step(values.dim(0) > 1 ? values.dim(1) : 0),
        step(values.dim(1) > 1 ? 1 : 0) {}
  const real* of(int64_t head) const { return values.data() + head * head_step; }
};

// 1 / √(c·Σx² + ε)
inline real inverse_size(const RowScale& scale, int64_t dim, const real* x) {
  const double square = static_cast<double>(row_dot(x, x, dim));
  return static_cast<real>(1 / std::sqrt(scale.factor(dim) * square + scale.epsilon));
}

// y = factor · gain ⊙ x over its size; y may be x.
inline void scale_row(const RowScale& scale, const Gain& gain, int64_t head, int64_t dim,
                      double factor, const real* x, real* y) {
  const real by = inverse_size(scale, dim, x) * static_cast<real>(factor);
  const real* const g = gain.of(head);
  for (int64_t c = 0; c < dim; ++c) y[c] = x[c] * by * g[c * gain.step];
}

}  // namespace attn
