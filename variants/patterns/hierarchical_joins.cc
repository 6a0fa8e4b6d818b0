// Joins and shares, parallel over cells; see hierarchical_joins.h.
#include "variants/patterns/hierarchical_joins.h"

#include <algorithm>
#include <cmath>

#include "core/base/marks.h"
#include "core/simd/row_ops.h"
#include "core/simd/rows.h"
#include "variants/softmax/softmax.h"

namespace attn {

void shift_log_sums(const Tensor& log_sum, real shift) {
  if (shift == 0) return;
  for (real& x : log_sum.values())
    if (x != kInfinity) x += shift;
}

void join_coarser(const Tensor& coarse_out, const Tensor& coarse_log_sum, const Tensor& out,
                  const Tensor& log_sum) {
  const Mark mark(Part::softmax);
  const int64_t m = out.dim(2), d = out.dim(3), coarse = coarse_out.dim(2);
  over_range(log_sum.size(), 3 * d, [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t parent = cell / m * coarse + cell % m / 2;
      const Join joint(log_sum[cell], coarse_log_sum[parent]);
      real* const into = out.data() + cell * d;
      const real* const from = coarse_out.data() + parent * d;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < d; ++c) into[c] = joint.near * into[c] + joint.far * from[c];
      log_sum[cell] = joint.log_sum;
    }
  });
}

RowShares RowShares::of_rows(const Tensor& grad, const Tensor& out, const Tensor& log_sum) {
  const Mark mark(Part::softmax);
  const RowShares made{.grad = grad, .dots = Tensor(log_sum.shape()), .least = log_sum};
  const int64_t d = grad.dim(3);
  over_range(log_sum.size(), d, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      made.dots[row] = row_dot(grad.data() + row * d, out.data() + row * d, d);
  });
  return made;
}

RowShares RowShares::coarser() const {
  const Mark mark(Part::softmax);
  const int64_t m = grad.dim(2), d = grad.dim(3), cells = (m + 1) / 2;
  const RowShares made{.grad = Tensor(grad.shape().with(2, cells)),
                       .dots = Tensor(dots.shape().with(2, cells)),
                       .least = Tensor(dots.shape().with(2, cells))};
  over_range(made.dots.size(), 2 * d, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t first = at / cells * m + at % cells * 2;
      const int64_t last = first + std::min<int64_t>(2, m - at % cells * 2);
      real* const into = made.grad.data() + at * d;
      std::fill_n(into, d, real(0));
      made.dots[at] = 0;
      made.least[at] = *std::min_element(least.data() + first, least.data() + last);
      for (int64_t cell = first; cell < last; ++cell) {
        if (least[cell] == kInfinity) continue;
        const real share = std::exp2(made.least[at] - least[cell]);
        made.dots[at] += share * dots[cell];
        const real* const from = grad.data() + cell * d;
        ATTN_INDEPENDENT
        for (int64_t c = 0; c < d; ++c) into[c] += share * from[c];
      }
    }
  });
  return made;
}

void RowShares::take(const Tensor& out, const Tensor& log_sum, real shift, const Tensor& of_out,
                     const Tensor& of_sum) const {
  const Mark mark(Part::softmax);
  const int64_t d = grad.dim(3);
  over_range(of_sum.size(), 2 * d, [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      real* const into = of_out.data() + cell * d;
      of_sum[cell] = 0;
      std::fill_n(into, d, real(0));
      if (least[cell] == kInfinity || log_sum[cell] == kInfinity) continue;
      const real share = std::exp2(log_sum[cell] + shift - least[cell]);
      const real* const from = grad.data() + cell * d;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < d; ++c) into[c] = share * from[c];
      of_sum[cell] = row_dot(into, out.data() + cell * d, d) - share * dots[cell];
    }
  });
}

}  // namespace attn
