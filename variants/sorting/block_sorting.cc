// Forward and backward of block sorting; see block_sorting.h. Tay et al. 2020, arXiv:2002.11296,
// section 3.1. One task a head; I: block of queries, J: block of keys, r: row of a block.
#include "variants/sorting/block_sorting.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

// A head's matrices: rows of `size` numbers of S over all its blocks, and over all but the last.
struct SortMatrices {
  real *whole, *rest;
  int64_t n;
};

struct Sort {
  Tensor log_sort, x;  // [batch, heads, blocks, blocks], [batch, heads, len, dim]
  int64_t block;
  IndexList lengths;

  int64_t all() const { return log_sort.dim(2); }
  int64_t dim() const { return x.dim(3); }
  int64_t heads() const { return x.dim(0) * x.dim(1); }
  Blocks blocks(int64_t head) const {
    return {length_of(lengths, head / x.dim(1), x.dim(2)), block};
  }
  const real* rows(int64_t head) const { return x.data() + head * x.dim(2) * dim(); }
  int64_t entry_reals() const { return 2 * block * dim(); }
  static int64_t work_reals(int64_t all) { return 2 * padded_reals(all * all); }
  int64_t work_reals() const { return work_reals(all()); }

  SortMatrices matrices(int64_t head, real* work) const {
    const SortMatrices s{work, work + padded_reals(all() * all()), blocks(head).count};
    const real* const log_s = log_sort.data() + head * all() * all();
    for (int64_t i = 0; i < s.n; ++i) {
      const real* const from = log_s + i * all();
      exp_row(s.n, from, 1, 0, s.whole + i * s.n);
      exp_row(s.n - 1, from, 1, log_sum_row(s.n - 1, from), s.rest + i * s.n);
      s.rest[i * s.n + s.n - 1] = 0;
    }
    return s;
  }
};

// to [entries of 2·block rows] beside from [blocks of `block` rows].
void sort_head(const Sort& p, int64_t head, real* to, real* work) {
  const Mark mark(Part::sorting);
  const Blocks b = p.blocks(head);
  const int64_t d = p.dim(), each = p.block * d, part = b.last * d;
  std::fill_n(to, p.all() * p.entry_reals(), real(0));
  if (b.count == 0) return;
  const SortMatrices s = p.matrices(head, work);
  const real* const x = p.rows(head);
  product(s.n, part, s.n, {s.whole, s.n}, {x, each}, to, p.entry_reals());
  if (s.n > 1)
    product(s.n, each - part, s.n - 1, {s.rest, s.n}, {x + part, each}, to + part, p.entry_reals());
  for (int64_t i = 0; i < s.n; ++i)
    std::copy_n(x + i * each, i + 1 < s.n ? each : part, to + i * p.entry_reals() + b.rows * d);
  count_flops(2 * static_cast<double>(s.n * (s.n * part + (s.n - 1) * (each - part))));
}

// gradients of S become those of log S; `rest` is normalised on its own.
void add_log_gradients(const SortMatrices& s, const real* whole, const real* rest, int64_t stride,
                       real* to) {
  for (int64_t i = 0; i < s.n; ++i) {
    const real mean = row_dot(s.rest + i * s.n, rest + i * s.n, s.n - 1);
    for (int64_t j = 0; j < s.n; ++j) {
      real grad = s.whole[i * s.n + j] * whole[i * s.n + j];
      if (j + 1 < s.n) grad += s.rest[i * s.n + j] * (rest[i * s.n + j] - mean);
      to[i * stride + j] += grad;
    }
  }
}

void sort_head_back(const Sort& p, int64_t head, const real* grad, std::span<Tensor> grads,
                    real* work) {
  const Mark mark(Part::sorting);
  const Blocks b = p.blocks(head);
  if (b.count == 0) return;
  const int64_t d = p.dim(), each = p.block * d, part = b.last * d, row = p.entry_reals();
  const SortMatrices s = p.matrices(head, work);
  if (grads[1].defined()) {
    real* const to = grads[1].data() + head * p.x.dim(2) * d;
    add_product(s.n, part, s.n, {s.whole, 1, s.n}, {grad, row}, to, each);
    if (s.n > 1)
      add_product(s.n - 1, each - part, s.n, {s.rest, 1, s.n}, {grad + part, row}, to + part, each);
    for (int64_t i = 0; i < s.n; ++i)
      for (int64_t c = 0; c < (i + 1 < s.n ? each : part); ++c)
        to[i * each + c] += grad[i * row + b.rows * d + c];
    count_flops(2 * static_cast<double>(s.n * (s.n * part + (s.n - 1) * (each - part))));
  }
  if (!grads[0].defined()) return;
  real* const whole = work + p.work_reals();
  real* const rest = whole + padded_reals(p.all() * p.all());
  const real* const x = p.rows(head);
  for (int64_t i = 0; i < s.n; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      whole[i * s.n + j] = row_dot(grad + i * row, x + j * each, part);
      rest[i * s.n + j] =
          j + 1 < s.n ? row_dot(grad + i * row + part, x + j * each + part, each - part) : real(0);
    }
  count_flops(2 * static_cast<double>(s.n * (s.n * part + (s.n - 1) * (each - part))));
  add_log_gradients(s, whole, rest, p.all(), grads[0].data() + head * p.all() * p.all());
}

}  // namespace

Var sorted_and_own(const Var& log_sort, const Var& x, int64_t block,
                   std::span<const int64_t> lengths) {
  const Sort p{log_sort.value(), x.value(), block, copied(lengths)};
  const Tensor out({p.heads() * p.all(), 1, 2 * block, p.dim()});
  const int64_t each = p.all() * p.entry_reals();
  run_tasks(p.heads(), p.work_reals(),
            [&](int64_t head, real* work) { sort_head(p, head, out.data() + head * each, work); });
  return custom_op(out, {log_sort, x}, [=](const Tensor& grad, std::span<Tensor> grads) {
    run_tasks(p.heads(), 2 * p.work_reals(), [&](int64_t head, real* work) {
      sort_head_back(p, head, grad.data() + head * each, grads, work);
    });
  });
}

std::vector<int64_t> sorted_and_own_lengths(int64_t batch, int64_t heads, int64_t len,
                                            int64_t block, std::span<const int64_t> lengths) {
  const int64_t all = (len + block - 1) / block;
  std::vector<int64_t> result;
  result.reserve(static_cast<size_t>(batch * heads * all));
  for (int64_t entry = 0; entry < batch * heads * all; ++entry) {
    const Blocks b(length_of(lengths, entry / all / heads, len), block);
    const int64_t i = entry % all, own = i + 1 < b.count ? block : b.last;
    result.push_back(i < b.count ? b.rows + own : 0);
  }
  return result;
}

double sorting_workspace(int64_t heads, int64_t len, int64_t block) {
  return static_cast<double>(workspace_bytes(heads, Sort::work_reals(Blocks(len, block).count)));
}

double sorting_flops(int64_t heads, int64_t len, int64_t dim, int64_t block) {
  const Blocks b(len, block);
  const int64_t short_rows = b.count > 1 ? block - b.last : 0;
  return 2 * static_cast<double>(heads * b.count * dim) *
         static_cast<double>(b.count * b.last + (b.count - 1) * short_rows);
}

}  // namespace attn
