// The state of one head at one position; see decayed_attention.h. Internal to variants/gated.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/simd/rows.h"

namespace attn {

// log(1 + e^x), without overflow.
inline real softplus_of(real x) {
  return std::max(x, real(0)) + std::log1p(std::exp(-std::abs(x)));
}

// S = diag(decay)·S + kᵀ·v. 3·d² FLOPs.
inline void decay_and_write(int64_t dim, const real* k, const real* v, const real* decay,
                            real* state) {
  for (int64_t c = 0; c < dim; ++c) {
    const real a = decay[c], key = k[c];
    real* const row = state + c * dim;
    ATTN_INDEPENDENT
    for (int64_t j = 0; j < dim; ++j) row[j] = a * row[j] + key * v[j];
  }
}

// out = scale·q·S, from zero. 2·d² FLOPs.
inline void read_state(int64_t dim, real scale, const real* q, const real* state, real* out) {
  for (int64_t j = 0; j < dim; ++j) out[j] = 0;
  for (int64_t c = 0; c < dim; ++c) {
    const real query = scale * q[c];
    const real* const row = state + c * dim;
    ATTN_INDEPENDENT
    for (int64_t j = 0; j < dim; ++j) out[j] += query * row[j];
  }
}

}  // namespace attn
