// Forward of attention to own and chosen blocks; see block_attention.h. First each block of queries
// meets its own keys; what it finds begins the result of its rows. Then each block of keys meets
// the queries that chose it, a strip at a time: their rows and sums are gathered, raised, and put
// back. A task has a range of queries of a head, so that no two write the same row.
#include "variants/selection/block_attention.h"

#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/base/workspace.h"
#include "core/simd/row_tiles.h"
#include "core/simd/softmax_rows.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr int64_t kOwnStrip = 24;      // queries of the own block, which a mask cuts through
constexpr int64_t kChosenStrip = 96;   // gathered queries
constexpr int64_t kLeastRange = 1024;  // queries of a task: each packed block serves enough of them

struct Layout {
  int64_t stride, scores, query, sums, row_max, row_sum, total;

  explicit Layout(const BlockGrid& grid) {
    WorkspaceParts parts;
    const int64_t rows = std::min(kChosenStrip, grid.len);
    stride = round_up(std::min(grid.block, grid.len), kRowMultiple);
    scores = parts.take(rows * stride);
    query = parts.take(rows * grid.dim);
    sums = parts.take(rows * grid.dim);
    row_max = parts.take(rows);
    row_sum = parts.take(rows);
    total = parts.total();
  }
};

int64_t range_of(const BlockGrid& grid) {
  const int64_t even = (grid.heads() * grid.len + 4 * threads() - 1) / (4 * threads());
  return threads() == 1 ? grid.len
                        : std::min(grid.len, round_up(std::max(kLeastRange, even), grid.block));
}

class Forward {
 public:
  Forward(const BlockGrid& grid, const Tensor& q, const Tensor& k, const Tensor& v,
          const BlockQueries& chosen, const Tensor& out, const Tensor& state)
      : grid_(grid),
        q_(q),
        k_(k),
        v_(v),
        chosen_(chosen),
        out_(out),
        row_max_(state.data()),
        row_sum_(state.data() + grid.heads() * grid.len),
        layout_(grid),
        factor_(logit_factor(grid.dim)),
        packed_head_(packed_reals(grid.len, grid.dim)) {}

  void run() {
    pack();
    const int64_t range = range_of(grid_), ranges = (grid_.len + range - 1) / range;
    run_tasks(grid_.heads() * ranges, layout_.total, [&](int64_t task, real* work) {
      const int64_t head = task / ranges, first = task % ranges * range;
      const Span queries{first, std::min(first + range, grid_.len)};
      double pairs = 0;
      for (int64_t b = first / grid_.block; b * grid_.block < queries.end; ++b)
        pairs += add_own(head, b, work);
      for (int64_t b = 0; (b + 1) * grid_.block < queries.end; ++b)
        pairs += add_chosen(head, b, chosen_.of(head, b, queries), work);
      finish(head, queries);
      count_flops(4 * pairs * static_cast<double>(grid_.dim));
    });
  }

 private:
  int64_t row(int64_t head, int64_t i) const { return head * grid_.len + i; }
  const real* panels(int64_t head) const {
    return static_cast<const real*>(packed_.data()) + head * packed_head_;
  }

  void pack() {
    const int64_t d = grid_.dim, panels = (grid_.len + kPanel - 1) / kPanel;
    packed_ =
        Block(static_cast<size_t>(grid_.heads() * packed_head_) * sizeof(real), Purpose::workspace);
    run_tasks(grid_.heads() * panels, 0, [&](int64_t task, real*) {
      const int64_t head = task / panels, first = task % panels * kPanel;
      const int64_t count = std::min(kPanel, grid_.length(head) - first);
      if (count > 0)
        pack_transposed(k_.data() + row(head, first) * d, count, d, d,
                        static_cast<real*>(packed_.data()) + head * packed_head_ + first * d);
    });
  }

  // Logits of `rows` queries with the first `cols` keys of a block; behind them -infinity.
  void score(int64_t head, int64_t b, int64_t rows, int64_t cols, const real* queries,
             real* scores) const {
    const int64_t first = b * grid_.block;
    // Column j of the product is written to c + j: that of the block's first key to `scores`.
    packed_columns(rows, {first, first + cols}, grid_.dim, {queries, grid_.dim}, panels(head),
                   scores - first, layout_.stride);
    for (int64_t c = cols; c < round_up(cols, kRowMultiple); ++c)
      for (int64_t r = 0; r < rows; ++r) scores[r * layout_.stride + c] = -kInfinity;
  }

  double add_own(int64_t head, int64_t b, real* work) const {
    const int64_t d = grid_.dim, keys = grid_.keys(head, b);
    const Span queries = grid_.queries(b);
    real* const scores = work + layout_.scores;
    real rescale[kOwnStrip];
    double pairs = 0;
    for (int64_t i = queries.begin; i < queries.end; i += kOwnStrip) {
      const int64_t rows = std::min(kOwnStrip, queries.end - i), at = row(head, i);
      const int64_t before = i - queries.begin, cols = std::min(keys, before + rows);
      std::fill_n(row_max_ + at, rows, -kInfinity);
      std::fill_n(row_sum_ + at, rows, real(0));
      if (cols == 0) {
        std::fill_n(out_.data() + at * d, rows * d, real(0));
        continue;
      }
      scale_rows_to(q_.data() + at * d, rows * d, factor_, work + layout_.query);
      score(head, b, rows, cols, work + layout_.query, scores);
      {
        const Mark mark(Part::masks);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = before + r + 1; c < cols; ++c)
            scores[r * layout_.stride + c] = -kInfinity;
      }
      online_softmax_rows(rows, round_up(cols, kRowMultiple), scores, layout_.stride, row_max_ + at,
                          row_sum_ + at, rescale);
      product(rows, d, cols, {scores, layout_.stride},
              {v_.data() + row(head, b * grid_.block) * d, d}, out_.data() + at * d, d);
      pairs += static_cast<double>(rows * cols);
    }
    return pairs;
  }

  double add_chosen(int64_t head, int64_t b, std::span<const int32_t> queries, real* work) const {
    const int64_t d = grid_.dim, cols = grid_.keys(head, b), count = std::ssize(queries);
    real *const scores = work + layout_.scores, *const sums = work + layout_.sums;
    real *const row_max = work + layout_.row_max, *const row_sum = work + layout_.row_sum;
    real rescale[kChosenStrip];
    for (int64_t first = 0; first < count; first += kChosenStrip) {
      const int64_t rows = std::min(kChosenStrip, count - first);
      const int32_t* const at = queries.data() + first;
      {
        const Mark mark(Part::gathering);
        for (int64_t r = 0; r < rows; ++r) {
          const int64_t from = row(head, at[r]);
          scale_rows_to(q_.data() + from * d, d, factor_, work + layout_.query + r * d);
          row_max[r] = row_max_[from], row_sum[r] = row_sum_[from];
        }
      }
      score(head, b, rows, cols, work + layout_.query, scores);
      online_softmax_rows(rows, round_up(cols, kRowMultiple), scores, layout_.stride, row_max,
                          row_sum, rescale);
      gather(head, at, rows, sums);
      add_product(rows, d, cols, {scores, layout_.stride},
                  {v_.data() + row(head, b * grid_.block) * d, d}, sums, d, rescale);
      const Mark mark(Part::gathering);
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t to = row(head, at[r]);
        move_rows<false>(out_.data() + to * d, d, sums + r * d, d, 1, d);
        row_max_[to] = row_max[r], row_sum_[to] = row_sum[r];
      }
    }
    return static_cast<double>(count * cols);
  }

  void gather(int64_t head, const int32_t* at, int64_t rows, real* sums) const {
    const Mark mark(Part::gathering);
    const int64_t d = grid_.dim;
    for (int64_t r = 0; r < rows; ++r)
      move_rows<false>(sums + r * d, d, out_.data() + row(head, at[r]) * d, d, 1, d);
  }

  void finish(int64_t head, Span queries) const {
    const Mark mark(Part::softmax);
    const int64_t d = grid_.dim;
    for (int64_t i = queries.begin; i < queries.end; ++i) {
      const int64_t at = row(head, i);
      real* const out = out_.data() + at * d;
      divide_row(d, out, row_sum_[at], out);
      real* const log_sum = row_max_;  // the same memory: from here on the row's log-sum-exp
      log_sum[at] = row_sum_[at] == 0 ? kInfinity : row_max_[at] + std::log2(row_sum_[at]);
    }
  }

  const BlockGrid& grid_;
  const Tensor &q_, &k_, &v_;
  const BlockQueries& chosen_;
  const Tensor& out_;
  real *const row_max_, *const row_sum_;
  const Layout layout_;
  const real factor_;
  const int64_t packed_head_;
  Block packed_;  // the keys of all heads
};

}  // namespace

double chosen_pairs(const BlockGrid& grid, int64_t most) {
  double pairs = 0;
  for (int64_t b = 0; b < grid.blocks(); ++b) {
    const Span queries = grid.queries(b);
    pairs += static_cast<double>((queries.end - queries.begin) * std::min(most, b) * grid.block);
  }
  return pairs;
}

double own_pairs(const BlockGrid& grid, int64_t strip) {
  const auto of = [strip](int64_t size) {
    double pairs = 0;
    for (int64_t i = 0; i < size; i += strip)
      pairs += static_cast<double>(std::min(strip, size - i) * std::min(size, i + strip));
    return pairs;
  };
  const int64_t whole = grid.len / grid.block;
  return static_cast<double>(whole) * of(grid.block) + of(grid.len - whole * grid.block);
}

BlockWork block_work(const BlockGrid& grid, int64_t most) {
  const double heads = static_cast<double>(grid.heads()), d = static_cast<double>(grid.dim),
               size = sizeof(real);
  const double pairs = own_pairs(grid, kOwnStrip) + chosen_pairs(grid, most);
  const int64_t range = range_of(grid), tasks = grid.heads() * ((grid.len + range - 1) / range);
  const double rows = heads * static_cast<double>(grid.len);
  return {.flops = 4 * d * heads * pairs,
          .backward_flops = 10 * d * heads * block_backward_pairs(grid, most),
          .peak_bytes = size * (rows * (d + 2) +
                                heads * static_cast<double>(packed_reals(grid.len, grid.dim))) +
                        static_cast<double>(workspace_bytes(tasks, Layout(grid).total))};
}

Var block_attention(const BlockGrid& grid, const Var& q, const Var& k, const Var& v,
                    const std::shared_ptr<const BlockQueries>& chosen) {
  const Tensor out(q.shape()), state({2, grid.heads(), grid.len});
  const Tensor qt = q.value(), kt = k.value(), vt = v.value();
  Forward(grid, qt, kt, vt, *chosen, out, state).run();
  return custom_op(
      out, {q, k, v},
      [grid, qt, kt, vt, chosen, out, state](const Tensor& grad, std::span<Tensor> grads) {
        block_backward(grid, qt, kt, vt, *chosen, out, state, grad, grads);
      });
}

}  // namespace attn
