// Forward of tiled softmax attention: 4·pairs·d FLOPs, one tile of scores a thread, parallel over
// batch × heads × query tiles. n: queries, m: keys, d: head width. Keys that no query of a tile
// sees are never read, so padding may hold anything.
#include "variants/kernels/softmax_attention.h"

#include <cmath>

#include "core/check.h"
#include "core/counters.h"
#include "core/eigen.h"
#include "core/kernels/exp.h"
#include "variants/kernels/softmax_tiles.h"
#include "variants/kernels/workers.h"

namespace attn {
namespace {

SoftmaxProblem problem_of(const Var& q, const Var& k, const Var& v, const SoftmaxOptions& options) {
  SoftmaxProblem p;
  p.batch = q.dim(0), p.heads = q.dim(1), p.q_len = q.dim(2), p.dim = q.dim(3);
  p.kv_len = k.dim(2), p.value_dim = v.dim(3);
  p.scale = options.scale > 0 ? options.scale : 1 / std::sqrt(static_cast<double>(p.dim));
  p.left = options.window;
  p.right = options.causal ? 0 : options.window;
  p.kv_lengths = options.kv_lengths;
  ATTN_CHECK(
      k.shape() == q.shape().with(2, p.kv_len) && v.shape() == k.shape().with(3, p.value_dim),
      "softmax attention: q {}, k {} and v {} do not fit", q.shape().str(), k.shape().str(),
      v.shape().str());
  return p;
}

int64_t workspace_reals(const Tiling& t, int64_t q_len, int64_t kv_len, int64_t dim) {
  const int64_t rows = std::min(t.rows, q_len), cols = std::min(t.cols, kv_len);
  return padded_reals(rows * dim) + 2 * padded_reals(rows) + rows * cols;
}

struct TileState {
  MatrixMap query;  // [rows, dim], times the scale
  MatrixMap out;    // [rows, value_dim], not yet divided by mass
  real* top;        // [rows] highest logit so far
  real* mass;       // [rows] sum of exp(logit - top)
};

// Turns the row's visible logits into exp(logit - top), hidden ones into 0, and rescales what the
// row has summed so far.
void soften(real* logits, int64_t cols, int64_t from, int64_t to, int64_t row, TileState& state) {
  std::fill(logits, logits + from, real(0));
  std::fill(logits + to, logits + cols, real(0));
  RowMap visible(logits + from, to - from);
  const real seen = visible.maxCoeff<Eigen::PropagateNaN>();
  const real top = seen <= state.top[row] ? state.top[row] : seen;  // so written, a NaN wins
  const real shrink = std::exp(state.top[row] - top);
  for (int64_t j = from; j < to; ++j) logits[j] = fast_exp(logits[j] - top);
  state.mass[row] = state.mass[row] * shrink + visible.sum();
  if (shrink != 1) state.out.row(row) *= shrink;
  state.top[row] = top;
}

void add_patch(const Band& band, const Patch& p, int64_t first_row, const MatrixMap& keys,
               const MatrixMap& values, real* scores, TileState& state) {
  const int64_t row = p.row - first_row;
  MatrixMap s = map(scores, p.rows, p.cols);
  s.noalias() = state.query.middleRows(row, p.rows) * keys.middleRows(p.col, p.cols).transpose();
  for (int64_t r = 0; r < p.rows; ++r) {
    int64_t from = 0, to = p.cols;
    if (p.edge) {
      from = std::clamp<int64_t>(band.begin(p.row + r) - p.col, 0, p.cols);
      to = std::clamp<int64_t>(band.end(p.row + r) - p.col, from, p.cols);
    }
    if (from < to)
      soften(scores + r * p.cols, p.cols, from, to, row + r, state);
    else
      std::fill_n(scores + r * p.cols, p.cols, real(0));
  }
  state.out.middleRows(row, p.rows).noalias() += s * values.middleRows(p.col, p.cols);
}

// One tile of queries against all the keys it sees. Returns the pairs multiplied.
double forward_tile(const SoftmaxProblem& problem, const Band& band, int64_t head, int64_t row_tile,
                    const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out,
                    const Tensor& log_sum, real* work) {
  const Tiling tiling(band);
  const int64_t first = row_tile * tiling.rows, rows = std::min(tiling.rows, problem.q_len - first);
  const int64_t at = head * problem.q_len + first;
  const MatrixMap keys = matrix(k, head), values = matrix(v, head);
  TileState state{map(work, rows, problem.dim),
                  map(out.data() + at * problem.value_dim, rows, problem.value_dim),
                  work + padded_reals(rows * problem.dim), nullptr};
  state.mass = state.top + padded_reals(rows);
  real* const scores = state.mass + padded_reals(rows);
  state.query = map(q.data() + at * problem.dim, rows, problem.dim) * real(problem.scale);
  state.out.setZero();
  std::fill_n(state.top, rows, -kInfinity);
  std::fill_n(state.mass, rows, real(0));
  double pairs = 0;
  const int64_t last = (band.end(first + rows - 1) + tiling.cols - 1) / tiling.cols;
  for (int64_t j = band.begin(first) / tiling.cols; j < last; ++j)
    visit_patches(band, tiling, row_tile, j, [&](const Patch& p) {
      add_patch(band, p, first, keys, values, scores, state);
      pairs += static_cast<double>(p.rows * p.cols);
    });
  for (int64_t r = 0; r < rows; ++r) {
    const bool empty = state.mass[r] == 0;
    if (!empty) state.out.row(r) /= state.mass[r];
    if (log_sum.defined())
      log_sum[at + r] = empty ? kInfinity : state.top[r] + std::log(state.mass[r]);
  }
  return pairs;
}

// Late tiles of a causal head cost more than early ones: taken from both ends in turn, every
// worker's share costs the same.
int64_t balanced(int64_t tile, int64_t tiles) { return tile % 2 ? tiles - 1 - tile / 2 : tile / 2; }

}  // namespace

Var softmax_attention(const Var& q, const Var& k, const Var& v, const SoftmaxOptions& options) {
  const SoftmaxProblem problem = problem_of(q, k, v, options);
  const bool keep = recording({q, k, v});
  const Tensor qt = q.value(), kt = k.value(), vt = v.value();
  const Tensor out(qt.shape().with(3, problem.value_dim));
  const Tensor log_sum = keep ? Tensor({problem.batch, problem.heads, problem.q_len}) : Tensor();
  const Tiling tiling(problem.band(0));
  const int64_t tiles = tiling.row_tiles(problem.band(0));
  const int64_t reals = workspace_reals(tiling, problem.q_len, problem.kv_len, problem.dim);
  run_tasks(problem.batch * problem.heads * tiles, reals, [&](int64_t task, real* work) {
    const int64_t head = task / tiles;
    const Band band = problem.band(head / problem.heads);
    const double pairs = forward_tile(problem, band, head, balanced(task % tiles, tiles), qt, kt,
                                      vt, out, log_sum, work);
    count_flops(2 * pairs * static_cast<double>(problem.dim + problem.value_dim));
  });
  count_bytes(static_cast<double>(sizeof(real)) *
              static_cast<double>(qt.size() + kt.size() + vt.size() + out.size()));
  if (!keep) return Var(out);
  return custom_op(
      out, {q, k, v},
      [problem, qt, kt, vt, out, log_sum](const Tensor& grad_out, std::span<Tensor> grads) {
        softmax_backward(problem, qt, kt, vt, out, log_sum, grad_out, grads);
      });
}

Cost softmax_cost(const AttentionShape& shape, int64_t window) {
  const Band band{shape.q_len, shape.kv_len, shape.kv_len, window, shape.causal ? 0 : window};
  const Tiling tiling(band);
  const int64_t heads = shape.batch * shape.heads;
  const double d = static_cast<double>(shape.head_dim), size = sizeof(real);
  const double rows = static_cast<double>(heads * shape.q_len),
               keys = static_cast<double>(heads * shape.kv_len);
  const int64_t reals = workspace_reals(tiling, shape.q_len, shape.kv_len, shape.head_dim);
  Cost cost;
  cost.flops = 4 * d * static_cast<double>(heads) * executed_pairs(band);
  cost.backward_flops = 2.5 * cost.flops;  // four products for two, and the scores made again
  cost.bytes = size * d * 2 * (rows + keys);
  cost.peak_bytes =
      size * rows * d + static_cast<double>(workspace_bytes(heads * tiling.row_tiles(band), reals));
  const double kept = window < 0 ? static_cast<double>(shape.kv_len)
                                 : static_cast<double>(std::min(window + 1, shape.kv_len));
  cost.state_bytes = size * 2 * d * kept * static_cast<double>(heads);
  return cost;
}

}  // namespace attn
