// SiLU of rows and its gradient. Private to core/ops.
#pragma once

#include <cstdint>

#include "core/simd/row_ops.h"

namespace attn {

// to = x·σ(x), of n numbers; `to` is not x.
inline void silu_row(int64_t n, const real* x, real* to) {
  sigmoid_row(n, x, to);
  for (int64_t i = 0; i < n; ++i) to[i] *= x[i];
}

// to = g·(x·σ(x))', which is σ·(1 + x·(1 - σ)); `to` is neither x nor g.
inline void silu_gradient(int64_t n, const real* x, const real* g, real* to) {
  sigmoid_row(n, x, to);
  for (int64_t i = 0; i < n; ++i) to[i] = g[i] * to[i] * (1 + x[i] * (1 - to[i]));
}

}  // namespace attn
