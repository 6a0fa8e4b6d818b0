// Backward of tiled softmax attention: weights recomputed from the log-sum-exp, 10·pairs·d FLOPs
// (14 where heads are too few for the threads and keys and queries are walked apart). Race-free
// without atomics, the same bits either way.
#include <cmath>

#include "core/counters.h"
#include "core/eigen.h"
#include "core/kernels/exp.h"
#include "variants/kernels/softmax_tiles.h"
#include "variants/kernels/workers.h"

namespace attn {
namespace {

struct Wanted {
  bool query = false, key = false, value = false;
};

class SoftmaxGradient {
 public:
  SoftmaxGradient(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k, const Tensor& v,
                  const Tensor& out, const Tensor& log_sum, const Tensor& grad_out,
                  std::span<Tensor> grads)
      : problem_(problem),
        tiling_(problem.band(0)),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        log_sum_(log_sum),
        grad_out_(grad_out),
        grad_q_(grads[0]),
        grad_k_(grads[1]),
        grad_v_(grads[2]) {}

  void run() const {
    const int64_t heads = problem_.batch * problem_.heads;
    const Wanted all{grad_q_.defined(), grad_k_.defined(), grad_v_.defined()};
    const int64_t row_tiles = (problem_.q_len + tiling_.rows - 1) / tiling_.rows;
    const int64_t col_tiles = (problem_.kv_len + tiling_.cols - 1) / tiling_.cols;
    if (heads % threads() == 0 || heads >= 4 * threads()) {
      run_tasks(heads, reals(), [&](int64_t head, real* work) {
        for (int64_t j = 0; j < col_tiles; ++j) walk(head, 0, row_tiles, j, j + 1, all, work);
      });
      return;
    }
    if (all.key || all.value)
      run_tasks(heads * col_tiles, reals(), [&](int64_t t, real* work) {
        const int64_t j = t % col_tiles;
        walk(t / col_tiles, 0, row_tiles, j, j + 1, {false, all.key, all.value}, work);
      });
    if (all.query)
      run_tasks(heads * row_tiles, reals(), [&](int64_t t, real* work) {
        const int64_t half = t % row_tiles, i = half % 2 ? row_tiles - 1 - half / 2 : half / 2;
        walk(t / row_tiles, i, i + 1, 0, col_tiles, {true, false, false}, work);
      });
  }

 private:
  int64_t reals() const {  // weights and their gradient
    return 2 * padded_reals(std::min(tiling_.rows, problem_.q_len) *
                            std::min(tiling_.cols, problem_.kv_len));
  }

  void walk(int64_t head, int64_t row_begin, int64_t row_end, int64_t col_begin, int64_t col_end,
            Wanted wanted, real* work) const {
    const Band band = problem_.band(head / problem_.heads);
    double pairs = 0;
    for (int64_t j = col_begin; j < std::min(col_end, tiling_.col_tiles(band)); ++j)
      for (int64_t i = row_begin; i < row_end; ++i)
        visit_patches(band, tiling_, i, j, [&](const Patch& p) {
          add_patch(band, head, p, wanted, work);
          pairs += static_cast<double>(p.rows * p.cols);
        });
    const double d = static_cast<double>(problem_.dim),
                 dv = static_cast<double>(problem_.value_dim);
    const bool scores = wanted.query || wanted.key;
    count_flops(2 * pairs *
                (d + (scores ? dv : 0) + (wanted.value ? dv : 0) + (wanted.query ? d : 0) +
                 (wanted.key ? d : 0)));
  }

  // Row r of the patch: weights P = exp(scale·S - L), then dS = scale·P·(dP - dO·O); hidden pairs
  // become 0 in both.
  void row_gradient(const Band& band, int64_t head, const Patch& p, int64_t r, bool scores,
                    real* weights, real* slopes) const {
    int64_t from = 0, to = p.cols;
    if (p.edge) {
      from = std::clamp<int64_t>(band.begin(p.row + r) - p.col, 0, p.cols);
      to = std::clamp<int64_t>(band.end(p.row + r) - p.col, from, p.cols);
      for (real* row : {weights, slopes}) {
        std::fill(row, row + from, real(0));
        std::fill(row + to, row + p.cols, real(0));
      }
    }
    const int64_t at = head * problem_.q_len + p.row + r, dv = problem_.value_dim;
    RowMap weight(weights + from, to - from), slope(slopes + from, to - from);
    const real scale = real(problem_.scale), log_sum = log_sum_[at];
    for (int64_t j = from; j < to; ++j) weights[j] = fast_exp(weights[j] * scale - log_sum);
    if (!scores) return;
    const real dot =
        (ConstRowMap(grad_out_.data() + at * dv, dv) * ConstRowMap(out_.data() + at * dv, dv))
            .sum();
    slope = weight * (slope - dot) * scale;
  }

  void add_patch(const Band& band, int64_t head, const Patch& p, Wanted wanted, real* work) const {
    const int64_t d = problem_.dim, dv = problem_.value_dim;
    const int64_t row = head * problem_.q_len + p.row, col = head * problem_.kv_len + p.col;
    const bool scores = wanted.query || wanted.key;
    const MatrixMap query = map(q_.data() + row * d, p.rows, d),
                    key = map(k_.data() + col * d, p.cols, d);
    const MatrixMap value = map(v_.data() + col * dv, p.cols, dv);
    const MatrixMap grad = map(grad_out_.data() + row * dv, p.rows, dv);
    MatrixMap weights = map(work, p.rows, p.cols), slopes = map(work + reals() / 2, p.rows, p.cols);
    weights.noalias() = query * key.transpose();
    if (scores) slopes.noalias() = grad * value.transpose();
    for (int64_t r = 0; r < p.rows; ++r)
      row_gradient(band, head, p, r, scores, weights.data() + r * p.cols,
                   slopes.data() + r * p.cols);
    if (wanted.value)
      map(grad_v_.data() + col * dv, p.cols, dv).noalias() += weights.transpose() * grad;
    if (wanted.key)
      map(grad_k_.data() + col * d, p.cols, d).noalias() += slopes.transpose() * query;
    if (wanted.query) map(grad_q_.data() + row * d, p.rows, d).noalias() += slopes * key;
  }

  const SoftmaxProblem& problem_;
  Tiling tiling_;
  const Tensor &q_, &k_, &v_, &out_, &log_sum_, &grad_out_, &grad_q_, &grad_k_, &grad_v_;
};

}  // namespace

void softmax_backward(const SoftmaxProblem& problem, const Tensor& q, const Tensor& k,
                      const Tensor& v, const Tensor& out, const Tensor& log_sum,
                      const Tensor& grad_out, std::span<Tensor> grads) {
  SoftmaxGradient(problem, q, k, v, out, log_sum, grad_out, grads).run();
}

}  // namespace attn
