// The elementwise loops that only some variants need, a row or many a call, on the instruction set
// that isa.h names: recurrent cells, additive scores, relu weights, rows along edges.
#pragma once

#include <cstdint>

#include "core/base/real.h"
#include "core/simd/product.h"
#include "core/simd/softmax_rows.h"

namespace attn {

// One position of a recurrent cell on one row, between its products: forward from the sums of the
// gates, backward from the state's gradient. LSTM: Hochreiter and Schmidhuber 1997 with the forget
// gate of Gers et al. 2000. GRU: Cho et al. 2014, arXiv:1406.1078, the reset gate after the product
// (as cuDNN has it), so that one product serves all gates. About 130 and 100 operations a number.

// i, f, o = σ(..), g = tanh(..), c = f·c + i·g, h = o·tanh(c). `a`: the gates' sums become the
// gates; a[4·dim ..) becomes c, which may be where c_before is.
void lstm_row(int64_t dim, real* a, const real* c_before, real* h);
// dh, dc: gradients of h and c; dc becomes that of c_before. `a` as lstm_row left it becomes the
// gradient of the sums.
void lstm_row_back(int64_t dim, real* a, const real* c_before, const real* dh, real* dc);
// r, z = σ(a + s), n = tanh(a_n + r·(s_n + candidate_bias)), h = (1 - z)·n + z·h_before. a: sums of
// the input [r z n], s: of the state; a becomes r z n and, at 3·dim, s_n + candidate_bias.
void gru_row(int64_t dim, real* a, const real* s, const real* candidate_bias, const real* h_before,
             real* h);
// `a` as gru_row left it becomes the gradient of the sums: r and z of both, at 2·dim that of the
// state's n, at 3·dim that of the input's; dh becomes what goes to h_before past the products.
void gru_row_back(int64_t dim, real* a, const real* h_before, real* dh);

inline constexpr int64_t kUnitMultiple = 4;  // units of additive scores that share a division
// A kept query and a panel of kept keys [units][kPanel], as in additive_scores.h: numbers e^2a, or,
// where some are far from 0, 2a.
struct AdditiveRows {
  bool far;
  int64_t units;  // a multiple of kUnitMultiple
  const real *query, *panel;
};
// out[j] = Σ_c weight[c] / (1 + e^(2a_c + 2b_jc)) for the keys of the panel.
void additive_scores(const AdditiveRows& rows, const real* weight, real* out);
// With r = 1 / (1 + e^(2a_c + 2b_jc)): adds slope[j]·r(1 - r) to keys [units][kPanel], and sets
// of_query[c] to its sum over the keys, of_unit[c] to that of slope[j]·r.
void additive_slopes(const AdditiveRows& rows, const real* slopes, real* keys, real* of_query,
                     real* of_unit);
// logits[j] += factor / (1 + e^(2a + 2b[j]))
void add_additive_unit(int64_t keys, real a, const real* b, real factor, real* logits);

// x becomes 0 where it is below; NaN stays. Rows are `stride` apart.
void relu_rows(int64_t rows, int64_t cols, real* x, int64_t stride);
// slope becomes factor·slope where weight is above 0, else 0.
void relu_slopes(int64_t cols, const real* weight, real factor, real* slope);

// Which keys each of `rounds` rounds of hashing shows a query: those whose code is below its own by
// `least` to `most`. Codes of the keys lie `stride` apart from round to round.
struct BucketCodes {
  int64_t rounds, stride;
  const int32_t* keys;
  const int32_t* query;  // [rounds]
  int32_t least, most;
};
// Of `count` logits, a multiple of kRowMultiple: less logs[number of rounds that show the key]; or
// -infinity, where `round` does not show it.
void hide_buckets(int64_t count, const BucketCodes& codes, int64_t round, const real* logs,
                  real* logits);

// Rows of `dim` numbers of a matrix, those that a list names.
struct ListedRows {
  int64_t count, dim;
  const int32_t* at;
  const real* row(const real* matrix, int64_t e) const { return matrix + at[e] * dim; }
};
// out = Σ_e weights[e]·row e
void weighted_rows(const ListedRows& rows, const real* weights, const real* matrix, real* out);
// What two passes over the edges of one query send back. dots[e] = x·row e of `matrix`; row e of
// `to`, unless null, += factors[e]·x.
void dots_and_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                  real* dots, real* to);
// sum, unless null, += Σ_e factors[e]·row e of `matrix`; row e of `to`, unless null, +=
// factors[e]·x.
void sum_and_add(const ListedRows& rows, const real* x, const real* matrix, const real* factors,
                 real* sum, real* to);

}  // namespace attn
