// Weights of differential attention and their gradients; see differential_rows.h. The two softmaxes
// are subtracted before the one product with the values.
#include "variants/normalisers/differential_rows.h"

#include "core/simd/row_ops.h"
#include "core/simd/softmax_rows.h"

namespace attn {

DifferentialWeights::DifferentialWeights(real lambda) : lambda_(lambda) {
  parts = 2;
  sums = 1;
}

void DifferentialWeights::weigh(const RowStrip& x) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    if (n == 0) continue;
    real *const a = x.row(0, r), *const b = x.row(1, r);
    const real first = 1 / exp_from_max_row(n, a), second = lambda_ / exp_from_max_row(n, b);
    for (int64_t j = 0; j < n; ++j) a[j] = first * a[j] - second * b[j];
  }
}

// Leaves both softmaxes in x.
RowStrip DifferentialWeights::keep(const RowStrip& x, const RowStrip&,
                                   const RowStrip& spare) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    if (n == 0) continue;
    real *const a = x.row(0, r), *const b = x.row(1, r), *const weights = spare.row(0, r);
    const real first = 1 / exp_from_max_row(n, a), second = 1 / exp_from_max_row(n, b);
    for (int64_t j = 0; j < n; ++j) {
      a[j] *= first;
      b[j] *= second;
      weights[j] = a[j] - lambda_ * b[j];
    }
  }
  return spare;
}

void DifferentialWeights::gradient(const RowStrip& x, const RowStrip&, const RowStrip& g,
                                   double* learned) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    const real *const a = x.row(0, r), *const b = x.row(1, r);
    real *const of_a = g.row(0, r), *const of_b = g.row(1, r);
    const real first = row_dot(a, of_a, n), second = row_dot(b, of_a, n);
    learned[0] -= static_cast<double>(second);
    for (int64_t j = 0; j < n; ++j) {
      of_b[j] = -lambda_ * b[j] * (of_a[j] - second);
      of_a[j] = a[j] * (of_a[j] - first);
    }
  }
}

}  // namespace attn
