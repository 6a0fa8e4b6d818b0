// See path_attention.h. A task is one chunk of queries: online softmax from its own chunk back to
// the first, the queries passing a map after each.
#include "variants/chunked/path_attention.h"

#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "variants/chunked/path_problem.h"
#include "variants/softmax/softmax_merge.h"

namespace attn {
namespace {

PathProblem problem_of(const PathInputs& x, const std::vector<int64_t>& valid) {
  const Shape& shape = x.q.shape();
  ATTN_CHECK(shape.rank() == 4, "path: q {} must have four dimensions", shape.str());
  const PathProblem p{shape[0], shape[1], shape[2], shape[3], valid};
  const auto check = [](const char* name, const Var& given, const Shape& wanted) {
    ATTN_CHECK(given.shape() == wanted, "path: {} of {} in place of {}", name, given.shape().str(),
               wanted.str());
  };
  check("k", x.k, shape);
  check("v", x.v, shape);
  check("maps", x.maps, shape.with(2, p.dim));
  check("near", x.near, shape.with(3, p.chunk));
  ATTN_CHECK(p.chunk % kRowMultiple == 0 && p.chunk <= kPanel,
             "path: a chunk of {} must be a multiple of {}, at most {}", p.chunk, kRowMultiple,
             kPanel);
  ATTN_CHECK(static_cast<int64_t>(valid.size()) == p.heads, "path: {} lengths for {} heads",
             valid.size(), p.heads);
  return p;
}

// Of one worker.
struct Layout {
  explicit Layout(const PathProblem& p)
      : logits(padded_reals(p.rows_reals())),
        queries(logits + padded_reals(p.chunk * p.chunk)),
        panels(queries + padded_reals(p.rows_reals())),
        sums(panels + padded_reals(packed_reals(p.chunk, p.dim))),
        total(sums + GroupSums::reals(p.chunk, p.dim)) {}
  int64_t logits, queries, panels, sums, total;
};

void forward_of_chunk(const PathProblem& p, const PathSaved& s, int64_t head, int64_t a,
                      real* work) {
  const Layout at(p);
  const int64_t c = p.chunk, dim = p.dim, size = p.rows_reals();
  const auto rows = [&](const Tensor& t, int64_t b) {
    return t.data() + (head * p.chunks + b) * size;
  };
  real *queries = work, *next = work + at.queries, *const logits = work + at.logits,
       *const panels = work + at.panels;
  const GroupSums sums = GroupSums::in(work + at.sums, c, dim);
  const auto attend = [&](int64_t b) {
    hide_keys(c, p.keys(head, b), b == a, logits);
    online_softmax_rows(c, c, logits, c, sums.row_max, sums.row_sum, sums.rescale);
    // The values of padding may hold anything.
    add_product(c, dim, p.keys(head, b), {logits, c}, {rows(s.v, b), dim}, sums.sum, dim,
                sums.rescale);
  };
  const real* const near = s.near.data() + (head * p.chunks + a) * c * c;
  for (int64_t i = 0; i < c * c; ++i) logits[i] = kLog2E * near[i];
  attend(a);
  const real* const q = rows(s.q, a);
  for (int64_t i = 0; i < size; ++i) queries[i] = kLog2E * q[i];
  for (int64_t b = a - 1; b >= 0; --b) {
    pack_transposed(rows(s.k, b), c, dim, dim, panels);
    product(c, c, dim, {queries, dim}, packed(panels, dim), logits, c);
    attend(b);
    if (b == 0) break;
    product(c, dim, dim, {queries, dim}, {s.maps.data() + (head * p.chunks + b) * dim * dim, dim},
            next, dim);
    std::swap(queries, next);
  }
  real* const out = rows(s.out, a);
  for (int64_t i = 0; i < c; ++i) {
    const RowSums row = sums.row(i, dim);
    divide_row(dim, row.sum, row.row_sum, out + i * dim);
    if (s.log_sum.defined())
      s.log_sum[(head * p.chunks + a) * c + i] =
          row.row_sum == 0 ? kInfinity : row.row_max + std::log2(row.row_sum);
  }
}

}  // namespace

double path_flops(int64_t chunks, int64_t chunk, int64_t dim) {
  const auto pairs = static_cast<double>(chunks * (chunks - 1) / 2);
  const auto maps = static_cast<double>((chunks - 1) * (chunks - 2) / 2);
  return 4 * pairs * static_cast<double>(chunk * chunk * dim) +
         2 * static_cast<double>(chunks * chunk * chunk * dim) +
         2 * maps * static_cast<double>(chunk * dim * dim);
}

Var path_attention(const PathInputs& x, const std::vector<int64_t>& valid) {
  const PathProblem p = problem_of(x, valid);
  PathSaved saved{x.q.value(),    x.k.value(),    x.v.value(),
                  x.maps.value(), x.near.value(), Tensor(x.v.shape())};
  const bool keep = recording({x.q, x.k, x.v, x.maps, x.near});
  if (keep) saved.log_sum = Tensor({p.heads, p.chunks * p.chunk});
  run_tasks(p.heads * p.chunks, Layout(p).total, [&](int64_t task, real* work) {
    forward_of_chunk(p, saved, task / p.chunks, task % p.chunks, work);
  });
  count_flops(static_cast<double>(p.heads) * path_flops(p.chunks, p.chunk, p.dim));
  count_bytes(sizeof(real) *
              static_cast<double>(4 * saved.q.size() + saved.maps.size() + saved.near.size()));
  if (!keep) return Var(saved.out);
  return custom_op(saved.out, {x.q, x.k, x.v, x.maps, x.near},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     path_backward(p, saved, grad_out, grads);
                   });
}

}  // namespace attn
