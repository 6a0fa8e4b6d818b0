// One position of a recurrent cell on one row, between its products: forward from the sums of the
// gates, backward from the state's gradient. LSTM: Hochreiter and Schmidhuber 1997 with the forget
// gate of Gers et al. 2000. GRU: Cho et al. 2014, arXiv:1406.1078, the reset gate after the product
// (as cuDNN has it), so that one product serves all gates. About 130 and 100 operations a number.
#pragma once

#include <cstdint>

#include "core/kernels/rows.h"
#include "variants/kernels/squash.h"

namespace attn {

enum class RecurrentCell { lstm, gru };

inline int64_t gates_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 4 : 3; }
// Stretches of `dim` numbers that a row keeps for its backward: LSTM i f g o and c; GRU r z n, and
// what r is multiplied by.
inline int64_t kept_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 5 : 4; }

// i, f, o = σ(..), g = tanh(..), c = f·c + i·g, h = o·tanh(c). `a`: the gates' sums become the
// gates; a[4·dim ..) becomes c, which may be where c_before is.
inline void lstm_row(int64_t dim, real* a, const real* c_before, real* h) {
  real *const f = a + dim, *const g = f + dim, *const o = g + dim, *const c = o + dim;
  ATTN_INDEPENDENT
  for (int64_t j = 0; j < dim; ++j) {
    a[j] = sigmoid_at(a[j]);
    f[j] = sigmoid_at(f[j]);
    g[j] = tanh_at(g[j]);
    o[j] = sigmoid_at(o[j]);
    c[j] = f[j] * c_before[j] + a[j] * g[j];
    h[j] = o[j] * tanh_at(c[j]);
  }
}

// dh, dc: gradients of h and c; dc becomes that of c_before. `a` as lstm_row left it becomes the
// gradient of the sums.
inline void lstm_row_back(int64_t dim, real* a, const real* c_before, const real* dh, real* dc) {
  real *const f = a + dim, *const g = f + dim, *const o = g + dim, *const c = o + dim;
  ATTN_INDEPENDENT
  for (int64_t j = 0; j < dim; ++j) {
    const real t = tanh_at(c[j]), in = a[j], forget = f[j], fresh = g[j], out = o[j];
    const real slope = dc[j] + dh[j] * out * (1 - t * t);
    a[j] = slope * fresh * in * (1 - in);
    f[j] = slope * c_before[j] * forget * (1 - forget);
    g[j] = slope * in * (1 - fresh * fresh);
    o[j] = dh[j] * t * out * (1 - out);
    dc[j] = slope * forget;
  }
}

// r, z = σ(a + s), n = tanh(a_n + r·(s_n + candidate_bias)), h = (1 - z)·n + z·h_before. a: sums of
// the input [r z n], s: of the state; a becomes r z n and, at 3·dim, s_n + candidate_bias.
inline void gru_row(int64_t dim, real* a, const real* s, const real* candidate_bias,
                    const real* h_before, real* h) {
  real *const z = a + dim, *const n = z + dim, *const m = n + dim;
  ATTN_INDEPENDENT
  for (int64_t j = 0; j < dim; ++j) {
    const real reset = sigmoid_at(a[j] + s[j]), update = sigmoid_at(z[j] + s[dim + j]);
    const real inner = s[2 * dim + j] + candidate_bias[j], fresh = tanh_at(n[j] + reset * inner);
    h[j] = (1 - update) * fresh + update * h_before[j];
    a[j] = reset;
    z[j] = update;
    n[j] = fresh;
    m[j] = inner;
  }
}

// `a` as gru_row left it becomes the gradient of the sums: r and z of both, at 2·dim that of the
// state's n, at 3·dim that of the input's; dh becomes what goes to h_before past the products.
inline void gru_row_back(int64_t dim, real* a, const real* h_before, real* dh) {
  real *const z = a + dim, *const n = z + dim, *const m = n + dim;
  ATTN_INDEPENDENT
  for (int64_t j = 0; j < dim; ++j) {
    const real reset = a[j], update = z[j], fresh = n[j], inner = m[j];
    const real slope = dh[j] * (1 - update) * (1 - fresh * fresh);
    a[j] = slope * inner * reset * (1 - reset);
    z[j] = dh[j] * (h_before[j] - fresh) * update * (1 - update);
    n[j] = slope * reset;
    m[j] = slope;
    dh[j] *= update;
  }
}

}  // namespace attn
