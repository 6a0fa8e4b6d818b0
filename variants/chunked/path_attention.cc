// See path_attention.h. A task is one chunk of queries: online softmax from its own chunk back to
// the first, the queries passing a map after each.
#include "variants/chunked/path_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "variants/chunked/path_problem.h"
#include "variants/chunked/unit_triangle.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

PathProblem path_problem(const PathInputs& x, int64_t len, const std::vector<int64_t>& lengths) {
  const Shape& shape = x.q.shape();
  ATTN_CHECK(shape.rank() == 4, "path: q {} must have four dimensions", shape.str());
  const PathProblem p{shape[0], shape[1], shape[2], shape[3], len, lengths};
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
  ATTN_CHECK(lengths.empty() || p.heads % static_cast<int64_t>(lengths.size()) == 0,
             "path: {} lengths for {} heads", lengths.size(), p.heads);
  return p;
}

// Of one worker.
struct PathLayout {
  explicit PathLayout(const PathProblem& p)
      : logits(padded_reals(p.rows_reals())),
        queries(logits + padded_reals(p.chunk * p.chunk)),
        panels(queries + padded_reals(p.rows_reals())),
        sums(panels + padded_reals(packed_reals(p.chunk, p.dim))),
        total(sums + GroupSums::reals(p.chunk, p.dim)) {}
  int64_t logits, queries, panels, sums, total;
};

void forward_of_chunk(const PathProblem& p, const PathSaved& s, int64_t head, int64_t a,
                      real* work) {
  Tally done;
  const PathLayout at(p);
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
    done.multiply_adds(c * dim * p.keys(head, b));
  };
  const real* const near = s.near.data() + (head * p.chunks + a) * c * c;
  for (int64_t i = 0; i < c * c; ++i) logits[i] = kLog2E * near[i];
  attend(a);
  const real* const q = rows(s.q, a);
  for (int64_t i = 0; i < size; ++i) queries[i] = kLog2E * q[i];
  for (int64_t b = a - 1; b >= 0; --b) {
    pack_transposed(rows(s.k, b), c, dim, dim, panels);
    product(c, c, dim, {queries, dim}, packed(panels, dim), logits, c);
    done.multiply_adds(c * c * dim);
    attend(b);
    if (b == 0) break;
    product(c, dim, dim, {queries, dim}, {s.maps.data() + (head * p.chunks + b) * dim * dim, dim},
            next, dim);
    done.multiply_adds(c * dim * dim);
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

PathChunks::PathChunks(int64_t len)
    : chunk(std::min(kPanel, (len + kRowMultiple - 1) / kRowMultiple * kRowMultiple)),
      chunks((len + chunk - 1) / chunk) {}

double path_flops(const PathChunks& cut, int64_t len, int64_t dim) {
  const int64_t pairs = cut.chunks * (cut.chunks - 1) / 2;
  const int64_t maps = (cut.chunks - 1) * (cut.chunks - 2) / 2;
  return 2 * static_cast<double>(cut.chunk * dim) *
         static_cast<double>(2 * pairs * cut.chunk + len + maps * dim);
}

Cost path_cost(const AttentionShape& s) {
  const PathChunks cut(s.kv_len);
  const int64_t heads = s.batch * s.heads, dim = s.head_dim, rows = cut.rows(), c = cut.chunk;
  const PathProblem p{heads, cut.chunks, c, dim, s.kv_len, {}};
  const auto of_heads = [&](int64_t numbers) { return static_cast<double>(heads * numbers); };
  // Of the chunks' own products: eight of c²·d multiply-adds, two of c³, a triangle, a map.
  const double products =
      of_heads(rows) * (16.0 * static_cast<double>(c * dim) + 4.0 * static_cast<double>(c * c) +
                        2.0 * static_cast<double>(dim * dim)) +
      unit_triangle_flops(heads * cut.chunks, c);
  const double backward =
      of_heads(1) * path_backward_flops(p) +
      of_heads(rows) * (32.0 * static_cast<double>(c * dim) + 12.0 * static_cast<double>(c * c) +
                        4.0 * static_cast<double>(dim * dim));
  const bool padded = rows != s.kv_len;
  const int64_t copy = padded ? rows * dim : 0, maps = cut.chunks * dim * dim;
  // Rows [rows, dim], squares [rows, c] and maps [chunks, dim, dim] that are alive at one moment:
  // while `near` is made, while the maps are made, and at the end.
  const int64_t row = rows * dim, square = rows * c;
  const int64_t near = 3 * row + copy + 6 * square,
                made = 9 * row + 2 * copy + 4 * square + 3 * maps,
                last = 7 * row + 2 * copy + 4 * square + maps;
  const double workspace =
      static_cast<double>(workspace_bytes(heads * cut.chunks, PathLayout(p).total));
  const double size = sizeof(real);
  const double peak =
      std::max({size * of_heads(std::max(near, made)), size * of_heads(last) + workspace,
                size * of_heads(last + (padded ? s.kv_len * dim : 0))});
  return {
      .flops = of_heads(1) * path_flops(cut, s.kv_len, dim) + products,
      .backward_flops = backward,
      .bytes = size * of_heads(9 * row + 6 * square + 3 * maps),
      .peak_bytes = peak + size * (of_heads(s.kv_len) + static_cast<double>(2 * c * c + dim * dim)),
      .state_bytes =
          size * of_heads((s.kv_len + kPanel - 1) / kPanel * kPanel * 2 * dim + dim + 1)};
}

Var path_attention(const PathInputs& x, int64_t len, const std::vector<int64_t>& lengths) {
  const PathProblem p = path_problem(x, len, lengths);
  PathSaved saved{x.q.value(),    x.k.value(),    x.v.value(),
                  x.maps.value(), x.near.value(), Tensor(x.v.shape())};
  const bool keep = recording({x.q, x.k, x.v, x.maps, x.near});
  if (keep) saved.log_sum = Tensor({p.heads, p.chunks * p.chunk});
  run_tasks(p.heads * p.chunks, PathLayout(p).total, [&](int64_t task, real* work) {
    forward_of_chunk(p, saved, task / p.chunks, task % p.chunks, work);
  });
  count_bytes(sizeof(real) *
              static_cast<double>(4 * saved.q.size() + saved.maps.size() + saved.near.size()));
  if (!keep) return Var(saved.out);
  return custom_op(saved.out, {x.q, x.k, x.v, x.maps, x.near},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     path_backward(p, saved, grad_out, grads);
                   });
}

}  // namespace attn
