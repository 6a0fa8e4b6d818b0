// Each output row is a sum of neighbouring rows: a product of a row of the filter with rows of x
// in place; see head_convolution.h. Rows at a time share one product, whose left operand is the
// filter between zeros, read one number further left a row.
#include "variants/lowrank/head_convolution.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kRows = kTileRows;  // of a product: more would multiply more zeros

struct Filtered {
  Tensor x, filter;
  std::vector<int64_t> lengths;

  int64_t heads() const { return x.dim(0) * x.dim(1); }
  int64_t dim() const { return x.dim(3); }
  int64_t kernel() const { return filter.dim(1); }
  int64_t length(int64_t head) const {
    return lengths.empty() ? x.dim(2) : lengths[static_cast<size_t>(head / x.dim(1))];
  }
  const real* taps(int64_t head) const { return filter.data() + head % x.dim(1) * kernel(); }
  int64_t work_reals() const { return padded_reals(kernel() + 2 * kRows); }
};

// Pairs of rows within the sequence and `reach` of each other.
int64_t pairs(int64_t len, int64_t reach) {
  int64_t sum = 0;
  for (int64_t shift = -reach; shift <= reach; ++shift)
    sum += std::max<int64_t>(0, len - std::abs(shift));
  return sum;
}

// to[i] += Σ_t taps[t]·from[i - half + t] over the valid rows; the taps in reverse if `back`.
void filter_head(const Filtered& p, int64_t head, const real* from, bool back, real* to,
                 real* work) {
  const int64_t n = p.length(head), d = p.dim(), size = p.kernel(), half = size / 2;
  std::fill_n(work, size + 2 * kRows, real(0));
  const real* const taps = p.taps(head);
  for (int64_t t = 0; t < size; ++t) work[kRows + t] = taps[back ? size - 1 - t : t];
  for (int64_t i = 0; i < n; i += kRows) {
    const int64_t rows = std::min(kRows, n - i);
    const int64_t begin = std::max<int64_t>(0, i - half), end = std::min(n, i + rows + half);
    for (int64_t c = 0; c < d; c += kPanel)
      add_product(rows, std::min(kPanel, d - c), end - begin,
                  {work + kRows + begin - (i - half), -1, 1}, {from + begin * d + c, d},
                  to + i * d + c, d);
  }
  count_flops(2 * static_cast<double>(pairs(n, half) * d));
}

void add_tap_gradient(const Filtered& p, int64_t head, const real* grad, real* to) {
  const int64_t n = p.length(head), d = p.dim(), half = p.kernel() / 2;
  const real* const x = p.x.data() + head * p.x.dim(2) * d;
  for (int64_t t = 0; t < p.kernel(); ++t) {
    const int64_t shift = t - half, rows = n - std::abs(shift);
    if (rows <= 0) continue;
    to[t] += row_dot(grad + std::max<int64_t>(0, -shift) * d, x + std::max<int64_t>(0, shift) * d,
                     rows * d);
  }
  count_flops(2 * static_cast<double>(pairs(n, half) * d));
}

}  // namespace

double head_convolution_flops(int64_t len, int64_t dim, int64_t kernel) {
  return 2 * static_cast<double>(pairs(len, kernel / 2) * dim);
}

Var head_convolution(const Var& x, const Var& filter, std::span<const int64_t> lengths) {
  const Filtered p{x.value(), filter.value(), {lengths.begin(), lengths.end()}};
  ATTN_CHECK(filter.shape() == Shape({x.dim(1), p.kernel()}) && p.kernel() % 2 == 1,
             "a filter of {} does not fit {}", filter.shape().str(), x.shape().str());
  const Tensor out = Tensor::zeros(x.shape());
  const int64_t matrix = x.dim(2) * x.dim(3);
  run_tasks(p.heads(), p.work_reals(), [&](int64_t head, real* work) {
    const Mark mark(Part::products);
    filter_head(p, head, p.x.data() + head * matrix, false, out.data() + head * matrix, work);
  });
  return custom_op(out, {x, filter}, [p, matrix](const Tensor& grad, std::span<Tensor> grads) {
    if (grads[0].defined())
      run_tasks(p.heads(), p.work_reals(), [&](int64_t head, real* work) {
        const Mark mark(Part::products);
        filter_head(p, head, grad.data() + head * matrix, true, grads[0].data() + head * matrix,
                    work);
      });
    if (grads[1].defined())
      run_tasks(p.x.dim(1), 0, [&](int64_t own, real*) {
        const Mark mark(Part::products);
        for (int64_t head = own; head < p.heads(); head += p.x.dim(1))
          add_tap_gradient(p, head, grad.data() + head * matrix,
                           grads[1].data() + own * p.kernel());
      });
  });
}

}  // namespace attn
