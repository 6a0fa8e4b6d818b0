// See compressed_attention.h. A strip of queries has all its weights at once, [strip, rows]; they
// are made again in the backward, a task a head.
#include "variants/selection/compressed_attention.h"

#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/base/workspace.h"
#include "core/simd/row_ops.h"
#include "core/simd/softmax_rows.h"
#include "variants/selection/block_choice.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr int64_t kStrip = 48;  // queries

struct CompressedLayout {
  int64_t stride, block_stride, scores, grad_logits, query, sums, row_max, row_sum, row, list,
      total;

  // has_sums: scores of blocks are more than the weights of one head.
  CompressedLayout(const BlockGrid& grid, int64_t columns, bool has_sums, int64_t most,
                   bool is_backward) {
    WorkspaceParts parts;
    const int64_t rows = std::min(kStrip, grid.len);
    stride = round_up(columns, kPanel);
    block_stride = round_up(grid.blocks(), kPanel);
    scores = parts.take(rows * stride);
    grad_logits = parts.take(is_backward ? rows * stride : 0);
    query = parts.take(rows * grid.dim);
    sums = parts.take(!is_backward && has_sums ? rows * block_stride : 0);
    row_max = parts.take(rows), row_sum = parts.take(rows);
    row = parts.take(is_backward ? 0 : block_stride);
    list = parts.take(is_backward ? 0 : TopList::reals(std::max<int64_t>(1, most)));
    total = parts.total();
  }
};

// Compressed blocks that have ended at position i.
int64_t ended(const BlockGrid& grid, const CompressedBlocks& of, int64_t head, int64_t i) {
  return of.ended(std::min(i + 1, grid.length(head)));
}

bool sums_weights(const BlockGrid& grid, const CompressedBlocks& of, int64_t shared) {
  return shared > 1 || !is_aligned(of, grid.block);
}

int64_t query_strips_of(const BlockGrid& grid) { return (grid.len + kStrip - 1) / kStrip; }

struct Problem {
  BlockGrid grid;
  CompressedBlocks of;
  Tensor q, keys, values;

  int64_t columns() const { return keys.dim(2); }

  int64_t row(int64_t head, int64_t i) const { return (head * grid.len + i) * grid.dim; }
  int64_t rows_of(int64_t head) const { return head * columns() * grid.dim; }

  // Logits of `rows` queries from i on; -infinity where a block has not ended. Returns the columns.
  int64_t score(int64_t head, int64_t i, int64_t rows, const real* panels,
                const CompressedLayout& layout, real* work) const {
    const int64_t d = grid.dim, cols = ended(grid, of, head, i + rows - 1);
    if (cols == 0) return 0;
    real* const scores = work + layout.scores;
    scale_rows_to(q.data() + row(head, i), rows * d, logit_factor(d), work + layout.query);
    product(rows, cols, d, {work + layout.query, d}, packed(panels, d), scores, layout.stride);
    const Mark mark(Part::masks);
    for (int64_t r = 0; r < rows; ++r)
      std::fill(scores + r * layout.stride + ended(grid, of, head, i + r),
                scores + r * layout.stride + round_up(cols, kRowMultiple), -kInfinity);
    return cols;
  }
};

class CompressedForward {
 public:
  CompressedForward(const Problem& p, int64_t shared, const ChosenBlocks& chosen, const Tensor& out,
                    const Tensor& log_sum)
      : p_(p),
        shared_(shared),
        chosen_(chosen),
        out_(out),
        log_sum_(log_sum),
        has_sums_(sums_weights(p.grid, p.of, shared)),
        layout_(p.grid, p.columns(), has_sums_, chosen.most(), false),
        packed_head_(packed_reals(p.columns(), p.grid.dim)),
        packed_(static_cast<size_t>(p.grid.heads() * packed_head_) * sizeof(real),
                Purpose::workspace) {}

  void run() const {
    const BlockGrid& grid = p_.grid;
    run_tasks(grid.heads(), 0, [&](int64_t head, real*) {
      pack_transposed(p_.keys.data() + p_.rows_of(head), p_.columns(), grid.dim, grid.dim,
                      panels(head));
    });
    const int64_t strips = query_strips_of(grid);
    run_tasks(grid.heads() / shared_ * strips, layout_.total, [&](int64_t task, real* work) {
      const int64_t i = task % strips * kStrip, rows = std::min(kStrip, grid.len - i);
      const int64_t first = task / strips * shared_;
      if (has_sums_) std::fill_n(work + layout_.sums, rows * layout_.block_stride, real(0));
      for (int64_t head = first; head < first + shared_; ++head) attend(head, i, rows, work);
      for (int64_t head = first; has_sums_ && head < first + shared_; ++head)
        choose(head, i, rows, work + layout_.sums, layout_.block_stride, work);
    });
  }

 private:
  real* panels(int64_t head) const {
    return static_cast<real*>(packed_.data()) + head * packed_head_;
  }

  void attend(int64_t head, int64_t i, int64_t rows, real* work) const {
    const int64_t d = p_.grid.dim, at = head * p_.grid.len + i;
    real* const scores = work + layout_.scores;
    real *const row_max = work + layout_.row_max, *const row_sum = work + layout_.row_sum;
    real rescale[kStrip];
    const int64_t cols = p_.score(head, i, rows, panels(head), layout_, work);
    if (!has_sums_)  // a softmax changes no order
      choose(head, i, rows, scores, layout_.stride, work);
    std::fill_n(row_max, rows, -kInfinity);
    std::fill_n(row_sum, rows, real(0));
    if (cols > 0)
      online_softmax_rows(rows, round_up(cols, kRowMultiple), scores, layout_.stride, row_max,
                          row_sum, rescale);
    product(rows, d, cols, {scores, layout_.stride}, {p_.values.data() + p_.rows_of(head), d},
            out_.data() + at * d, d);
    count_flops(4 * static_cast<double>(rows * cols * d));
    const Mark mark(Part::softmax);
    for (int64_t r = 0; r < rows; ++r) {
      real* const out = out_.data() + (at + r) * d;
      divide_row(d, out, row_sum[r], out);
      log_sum_[at + r] = row_sum[r] == 0 ? kInfinity : row_max[r] + std::log2(row_sum[r]);
      if (has_sums_ && row_sum[r] != 0)
        add_block_scores(p_.of, p_.grid.block, ended(p_.grid, p_.of, head, i + r), 1 / row_sum[r],
                         scores + r * layout_.stride, p_.grid.earlier(head, i + r),
                         work + layout_.sums + r * layout_.block_stride);
    }
  }

  // By the scores of blocks, in rows `stride` apart.
  void choose(int64_t head, int64_t i, int64_t rows, const real* scores, int64_t stride,
              real* work) const {
    const Mark mark(Part::selection);
    real* const row = work + layout_.row;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t before = p_.grid.earlier(head, i + r),
                    seen = std::min(i + r + 1, p_.grid.length(head)) / p_.grid.block;
      const int64_t known = std::min(before, seen);
      if (before > chosen_.most()) {  // of padding, some blocks have no score: nothing reads these
        std::copy_n(scores + r * stride, known, row);
        std::fill(row + known, row + before, -kInfinity);
      }
      choose_by_weights(before, row, chosen_.most(), work + layout_.list, chosen_.of(head, i + r));
    }
  }

  const Problem& p_;
  const int64_t shared_;
  const ChosenBlocks& chosen_;
  const Tensor &out_, &log_sum_;
  const bool has_sums_;
  const CompressedLayout layout_;
  const int64_t packed_head_;
  Block packed_;  // rows of keys of all heads
};

void compressed_backward(const Problem& p, const Tensor& out, const Tensor& log_sum,
                         const Tensor& grad, std::span<Tensor> grads) {
  const BlockGrid& grid = p.grid;
  const int64_t columns = p.columns();
  const CompressedLayout layout(grid, columns, false, 1, true);
  const int64_t d = grid.dim, stride = layout.stride, panel = packed_reals(columns, d);
  const real scale = real(1 / std::sqrt(static_cast<double>(d)));
  run_tasks(grid.heads(), layout.total + 2 * padded_reals(panel), [&](int64_t head, real* work) {
    real *const keys = work + layout.total, *const values = keys + padded_reals(panel);
    pack_transposed(p.keys.data() + p.rows_of(head), columns, d, d, keys);
    pack_transposed(p.values.data() + p.rows_of(head), columns, d, d, values);
    real *const weights = work + layout.scores, *const grad_logits = work + layout.grad_logits;
    real* const dots = work + layout.row_max;
    for (int64_t i = 0; i < grid.len; i += kStrip) {
      const int64_t rows = std::min(kStrip, grid.len - i), at = p.row(head, i);
      const int64_t cols = p.score(head, i, rows, keys, layout, work);
      if (cols == 0) continue;
      const int64_t padded = round_up(cols, kRowMultiple);
      const real* const from = grad.data() + at;
      product(rows, padded, d, {from, d}, packed(values, d), grad_logits, stride);
      dots_of_rows(rows, d, from, d, out.data() + at, d, dots);
      logit_grad_rows(rows, padded, weights, grad_logits, stride, log_sum.data() + at / d, dots,
                      scale);
      if (grads[2].defined())
        add_product(cols, d, rows, {weights, 1, stride}, {from, d},
                    grads[2].data() + p.rows_of(head), d);
      if (grads[1].defined())
        add_product(cols, d, rows, {grad_logits, 1, stride}, {p.q.data() + at, d},
                    grads[1].data() + p.rows_of(head), d);
      if (grads[0].defined())
        add_product(rows, d, cols, {grad_logits, stride}, {p.keys.data() + p.rows_of(head), d},
                    grads[0].data() + at, d);
      const int products = 2 + grads[0].defined() + grads[1].defined() + grads[2].defined();
      count_flops(2 * static_cast<double>(products * rows * cols * d));
    }
  });
}

}  // namespace

int64_t choose_by_weights(int64_t count, real* scores, int64_t most, real* work, int32_t* blocks) {
  if (count <= most || most <= 2) {
    const int64_t all = std::min(count, most);
    for (int64_t e = 0; e < all; ++e) blocks[e] = static_cast<int32_t>(e);
    if (all > 1) blocks[all - 1] = static_cast<int32_t>(count - 1);
    return all;
  }
  blocks[0] = 0;
  const int64_t picked = choose_row(count - 2, scores + 1, most - 2, work, blocks + 1);
  for (int64_t e = 1; e <= picked; ++e) ++blocks[e];
  blocks[picked + 1] = static_cast<int32_t>(count - 1);
  return picked + 2;
}

Var block_mean_rows(const BlockGrid& grid, const Var& x) {
  const Tensor means(x.shape().with(2, grid.blocks()));
  block_means(grid, x.value().data(), means.data());
  return custom_op(means, {x}, [grid](const Tensor& grad, std::span<Tensor> grads) {
    block_means_backward(grid, grad.data(), grads[0].data());
  });
}

void add_block_scores(const CompressedBlocks& of, int64_t block, int64_t count, real factor,
                      const real* weights, int64_t own, real* scores) {
  const int64_t each = block / of.stride, parts = of.block / of.stride;  // strides
  for (int64_t b = 0; b < own; ++b) {
    const int64_t first = b * each, last = first + each;
    real sum = 0;
    for (int64_t c = std::max<int64_t>(0, first - parts + 1); c < std::min(count, last); ++c)
      sum += static_cast<real>(std::min(c + parts, last) - std::max(c, first)) * weights[c];
    scores[b] += factor * sum;
  }
}

Var compressed_attention(const Var& q, const Var& key_rows, const Var& value_rows,
                         const CompressedBlocks& of, int64_t shared, const ChosenBlocks& chosen) {
  const Problem p{chosen.grid(), of, q.value(), key_rows.value(), value_rows.value()};
  const Tensor out(q.shape()), log_sum({p.grid.heads(), p.grid.len});
  CompressedForward(p, shared, chosen, out, log_sum).run();
  return custom_op(out, {q, key_rows, value_rows},
                   [p, out, log_sum](const Tensor& grad, std::span<Tensor> grads) {
                     compressed_backward(p, out, log_sum, grad, grads);
                   });
}

double compressed_pairs(const BlockGrid& grid, const CompressedBlocks& of) {
  double pairs = 0;
  for (int64_t i = 0; i < grid.len; i += kStrip) {
    const int64_t rows = std::min(kStrip, grid.len - i);
    pairs += static_cast<double>(rows * ended(grid, of, 0, i + rows - 1));
  }
  return pairs;
}

double compressed_bytes(const BlockGrid& grid, const CompressedBlocks& of, int64_t rows,
                        int64_t shared, int64_t most) {
  const CompressedLayout layout(grid, rows, sums_weights(grid, of, shared),
                                std::min(most, grid.blocks() - 1), false);
  return static_cast<double>(sizeof(real)) *
             static_cast<double>(grid.heads() * (grid.len + packed_reals(rows, grid.dim))) +
         static_cast<double>(
             workspace_bytes(grid.heads() / shared * query_strips_of(grid), layout.total));
}

}  // namespace attn
