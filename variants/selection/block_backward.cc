// Backward of attention to own and chosen blocks: weights recomputed from the log-sum-exp, 10·d
// FLOPs a pair; see block_attention.h. A block of keys is packed once and meets its own queries,
// then the strips of those that chose it, gathered. One task a head; where heads are too few for
// the threads, the blocks and the queries of a head are divided into `parts`, and in each round a
// task takes one part of both, so that no two tasks write the same rows.
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/base/workspace.h"
#include "core/simd/row_ops.h"
#include "core/simd/row_tiles.h"
#include "core/simd/rows.h"
#include "core/simd/softmax_rows.h"
#include "variants/selection/block_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr int64_t kBackwardStrip = 48;     // gathered queries
constexpr int64_t kOwnBackwardStrip = 24;  // queries of the own block, which a mask cuts through

struct BackwardLayout {
  int64_t stride, weights, grad_logits, query, scaled, from, to, sums, dots, keys, values, total;

  explicit BackwardLayout(const BlockGrid& grid) {
    WorkspaceParts parts;
    const int64_t rows = std::min(kBackwardStrip, grid.len), d = grid.dim;
    const int64_t cols = std::min(grid.block, grid.len);
    stride = round_up(cols, kRowMultiple);
    weights = parts.take(rows * stride), grad_logits = parts.take(rows * stride);
    query = parts.take(rows * d), scaled = parts.take(rows * d);
    from = parts.take(rows * d), to = parts.take(rows * d);
    sums = parts.take(rows), dots = parts.take(rows);
    keys = parts.take(packed_reals(cols, d)), values = parts.take(packed_reals(cols, d));
    total = parts.total();
  }
};

class BlockGradient {
 public:
  BlockGradient(const BlockGrid& grid, const Tensor& q, const Tensor& k, const Tensor& v,
                const BlockQueries& chosen, const Tensor& out, const Tensor& log_sum,
                const Tensor& grad, std::span<Tensor> grads)
      : grid_(grid),
        q_(q),
        k_(k),
        v_(v),
        chosen_(chosen),
        log_sum_(log_sum),
        grad_(grad),
        grads_(grads),
        layout_(grid),
        scale_(real(1 / std::sqrt(static_cast<double>(grid.dim)))),
        dots_(static_cast<size_t>(grid.heads() * grid.len) * sizeof(real), Purpose::workspace) {
    const int64_t d = grid.dim;
    over_range(grid.heads() * grid.len, d, [&](int64_t begin, int64_t end) {
      dots_of_rows(end - begin, d, grad.data() + begin * d, d, out.data() + begin * d, d,
                   dots() + begin);
    });
  }

  void run() const {
    const int64_t heads = grid_.heads();
    const int64_t parts = parts_of_units(heads);
    for (int64_t round = 0; round < parts; ++round)
      run_tasks(heads * parts, layout_.total, [&](int64_t task, real* work) {
        const int64_t head = task / parts, part = task % parts, of = (part + round) % parts;
        const Span queries{grid_.len * of / parts, grid_.len * (of + 1) / parts};
        double pairs = 0;
        for (int64_t b = part; b < grid_.blocks(); b += parts)
          pairs += add_block(head, b, queries, work);
        const int products = 2 + grads_[0].defined() + grads_[1].defined() + grads_[2].defined();
        count_flops(2 * pairs * static_cast<double>(products * grid_.dim));
      });
  }

 private:
  real* dots() const { return static_cast<real*>(dots_.data()); }
  int64_t row(int64_t head, int64_t i) const { return head * grid_.len + i; }

  double add_block(int64_t head, int64_t b, Span range, real* work) const {
    const int64_t d = grid_.dim, keys = grid_.keys(head, b), at = row(head, b * grid_.block) * d;
    if (keys == 0) return 0;
    const std::span<const int32_t> queries = chosen_.of(head, b, range);
    const Span own{std::max(range.begin, grid_.queries(b).begin),
                   std::min(range.end, grid_.queries(b).end)};
    if (queries.empty() && own.begin >= own.end) return 0;
    pack_transposed(k_.data() + at, keys, d, d, work + layout_.keys);
    pack_transposed(v_.data() + at, keys, d, d, work + layout_.values);
    double pairs = 0;
    for (int64_t i = own.begin; i < own.end; i += kOwnBackwardStrip) {
      const int64_t rows = std::min(kOwnBackwardStrip, own.end - i), before = i - b * grid_.block;
      const int64_t cols = std::min(keys, before + rows);
      for (int64_t r = 0; r < rows; ++r) gather(row(head, i + r), r, work);
      add_strip(rows, cols, before, at, work);
      for (int64_t r = 0; r < rows; ++r) scatter(row(head, i + r), r, work);
      pairs += static_cast<double>(rows * cols);
    }
    for (size_t first = 0; first < queries.size(); first += kBackwardStrip) {
      const auto rows =
          std::min<int64_t>(kBackwardStrip, std::ssize(queries) - static_cast<int64_t>(first));
      for (int64_t r = 0; r < rows; ++r)
        gather(row(head, queries[first + static_cast<size_t>(r)]), r, work);
      add_strip(rows, keys, keys, at, work);
      for (int64_t r = 0; r < rows; ++r)
        scatter(row(head, queries[first + static_cast<size_t>(r)]), r, work);
      pairs += static_cast<double>(rows * keys);
    }
    return pairs;
  }

  void gather(int64_t from, int64_t r, real* work) const {
    const Mark mark(Part::gathering);
    const int64_t d = grid_.dim;
    const real* const query = q_.data() + from * d;
    move_rows<false>(work + layout_.query + r * d, d, query, d, 1, d);
    scale_rows_to(query, d, logit_factor(d), work + layout_.scaled + r * d);
    move_rows<false>(work + layout_.from + r * d, d, grad_.data() + from * d, d, 1, d);
    work[layout_.sums + r] = log_sum_[from];
    work[layout_.dots + r] = dots()[from];
  }
  void scatter(int64_t to, int64_t r, const real* work) const {
    if (!grads_[0].defined()) return;
    const Mark mark(Part::gathering);
    const int64_t d = grid_.dim;
    move_rows<true>(grads_[0].data() + to * d, d, work + layout_.to + r * d, d, 1, d);
  }

  // Row r of the strip sees the first before + r + 1 of the block's keys, which begin at `at`.
  void add_strip(int64_t rows, int64_t cols, int64_t before, int64_t at, real* work) const {
    const int64_t d = grid_.dim, stride = layout_.stride, padded = round_up(cols, kRowMultiple);
    real *const weights = work + layout_.weights, *const grad_logits = work + layout_.grad_logits;
    const real* const from = work + layout_.from;
    product(rows, cols, d, {work + layout_.scaled, d}, packed(work + layout_.keys, d), weights,
            stride);
    product(rows, cols, d, {from, d}, packed(work + layout_.values, d), grad_logits, stride);
    hide(rows, cols, padded, before, weights, -kInfinity);
    hide(rows, cols, padded, before, grad_logits, 0);
    logit_grad_rows(rows, padded, weights, grad_logits, stride, work + layout_.sums,
                    work + layout_.dots, scale_);
    if (grads_[2].defined())
      add_product(cols, d, rows, {weights, 1, stride}, {from, d}, grads_[2].data() + at, d);
    if (grads_[1].defined())
      add_product(cols, d, rows, {grad_logits, 1, stride}, {work + layout_.query, d},
                  grads_[1].data() + at, d);
    if (grads_[0].defined())
      product(rows, d, cols, {grad_logits, stride}, {k_.data() + at, d}, work + layout_.to, d);
  }
  void hide(int64_t rows, int64_t cols, int64_t padded, int64_t before, real* x, real value) const {
    const Mark mark(Part::masks);
    if (cols == padded && before >= cols) return;
    for (int64_t r = 0; r < rows; ++r)
      std::fill(x + r * layout_.stride + std::min(cols, before + r + 1),
                x + r * layout_.stride + padded, value);
  }

  const BlockGrid& grid_;
  const Tensor &q_, &k_, &v_;
  const BlockQueries& chosen_;
  const Tensor &log_sum_, &grad_;
  std::span<Tensor> grads_;
  const BackwardLayout layout_;
  const real scale_;
  Block dots_;  // dO·O of each query
};

}  // namespace

double block_backward_pairs(const BlockGrid& grid, int64_t most) {
  return own_pairs(grid, kOwnBackwardStrip) + chosen_pairs(grid, most);
}

void block_backward(const BlockGrid& grid, const Tensor& q, const Tensor& k, const Tensor& v,
                    const BlockQueries& chosen, const Tensor& out, const Tensor& log_sum,
                    const Tensor& grad, std::span<Tensor> grads) {
  BlockGradient(grid, q, k, v, chosen, out, log_sum, grad, grads).run();
}

}  // namespace attn
