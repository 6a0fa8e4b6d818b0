// Elementwise kernels of single variants: recurrent cells, additive scores, relu weights, bucket
// masks. They run on the instruction set that isa.h selects.
#pragma once

#include <cstdint>

#include "core/base/real.h"
#include "core/simd/product.h"
#include "core/simd/softmax_rows.h"

namespace attn {

// One step of a recurrent cell for one row, after the matrix products. LSTM: Hochreiter and
// Schmidhuber 1997, with the forget gate of Gers et al. 2000. GRU: Cho et al. 2014,
// arXiv:1406.1078, with the reset gate applied after the product, as in cuDNN, so that one product
// serves all gates. About 130 and 100 operations a number.

// i, f, o = σ(..), g = tanh(..), c = f·c_before + i·g, h = o·tanh(c). `a` holds the pre-activations
// [i f g o]; they are replaced by the gates, and c is written at a + 4·dim. c_before may be there.
void lstm_row(int64_t dim, real* a, const real* c_before, real* h);
// dh and dc are the gradients of h and c; dc is replaced by the gradient of c_before. `a`, as
// lstm_row left it, is replaced by the gradient of the pre-activations.
void lstm_row_backward(int64_t dim, real* a, const real* c_before, const real* dh, real* dc);
// r, z = σ(a + s), n = tanh(a_n + r·(s_n + candidate_bias)), h = (1 - z)·n + z·h_before. `a` and
// `s` are the pre-activations [r z n] of the input and of the state. `a` is replaced by r z n, and
// s_n + candidate_bias is written at a + 3·dim.
void gru_row(int64_t dim, real* a, const real* s, const real* candidate_bias, const real* h_before,
             real* h);
// `a`, as gru_row left it, is replaced by the gradients of the pre-activations: r and z of both,
// then n of the state, then n of the input. dh is replaced by dh·z, the gradient of h_before
// without the path through the products.
void gru_row_backward(int64_t dim, real* a, const real* h_before, real* dh);

inline constexpr int64_t kUnitMultiple = 4;  // units of additive scores that share a division
// A transformed query and a panel of transformed keys [units][kPanel], as in additive_scores.h: the
// numbers e^2a, or 2a if `large`.
struct AdditiveRows {
  bool large;     // e^2a could overflow
  int64_t units;  // a multiple of kUnitMultiple
  const real *query, *panel;
};
// out[j] = Σ_c weight[c] / (1 + e^(2a_c + 2b_jc)) for each key j of the panel.
void additive_scores(const AdditiveRows& rows, const real* weight, real* out);
// With r = 1 / (1 + e^(2a_c + 2b_jc)): adds grad_logits[j]·r(1 - r) to grad_keys [units][kPanel],
// sets grad_query[c] to its sum over the keys, and grad_unit[c] to the sum of grad_logits[j]·r.
void additive_grad(const AdditiveRows& rows, const real* grad_logits, real* grad_keys,
                   real* grad_query, real* grad_unit);
// logits[j] += factor / (1 + e^(2a + 2b[j]))
void add_additive_unit(int64_t keys, real a, const real* b, real factor, real* logits);

// x = max(x, 0), in place; NaN stays. Rows are `stride` apart.
void relu_rows(int64_t rows, int64_t cols, real* x, int64_t stride);
// grad = factor·grad where weight > 0, else 0; in place.
void relu_grad_row(int64_t cols, const real* weight, real factor, real* grad);

// The bucket mask of one query. In a round of hashing, the query sees the keys with
// min_gap <= query code - key code <= max_gap. The key codes of two rounds are `stride` apart.
struct BucketCodes {
  int64_t rounds, stride;
  const int32_t* keys;
  const int32_t* query;  // [rounds]
  int32_t min_gap, max_gap;
};
// Masks `count` logits (a multiple of kRowMultiple) in place: -infinity for keys that the query
// does not see in `round`. From the others, it subtracts log_counts[number of rounds that show the
// key].
void mask_buckets(int64_t count, const BucketCodes& codes, int64_t round, const real* log_counts,
                  real* logits);

}  // namespace attn
