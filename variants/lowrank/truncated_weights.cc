// Weights and their decomposition lie in a workspace. The gradient through the truncation is exact:
// in the basis of singular vectors it couples each kept value with each dropped one. Weights that
// are not finite are not decomposed: all outputs and gradients of their head are NaN. See
// truncated_weights.h.
#include "variants/lowrank/truncated_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <Eigen/Core>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/dense/dense.h"
#include "core/dense/singular_values.h"

namespace attn {
namespace {

using Matrix = Eigen::MatrixXd;

constexpr double kLeastGap = 1e-14;  // of squared singular values, over the largest

using MatrixMap = Eigen::Map<Eigen::MatrixXd>;
using Given = Eigen::Map<const Eigen::MatrixXd>;
using attn_dense::Side;

Given given(const Matrix& x) { return {x.data(), x.rows(), x.cols()}; }
Given given(const MatrixMap& x) { return {x.data(), x.rows(), x.cols()}; }
Given first_columns(const MatrixMap& x, int64_t count) { return {x.data(), x.rows(), count}; }

void multiply(Side of_a, const Given& a, Side of_b, const Given& b, double* to) {
  const bool turn_a = of_a == Side::transposed, turn_b = of_b == Side::transposed;
  attn_dense::product(turn_a ? a.cols() : a.rows(), turn_a ? a.rows() : a.cols(),
                      turn_b ? b.rows() : b.cols(), of_a, a.data(), of_b, b.data(), to);
}

Matrix times(Side of_a, const Given& a, const Given& b) {
  Matrix c(of_a == Side::plain ? a.rows() : a.cols(), b.cols());
  multiply(of_a, a, Side::plain, b, c.data());
  return c;
}

// What find_singular_values() leaves in its workspace.
class SingularValues {
 public:
  SingularValues(const MatrixMap& matrix, double* space)
      : left_(space, matrix.rows(), matrix.rows()),
        right_(space + matrix.size(), matrix.rows(), matrix.rows()),
        first_(space + 2 * matrix.size(), matrix.rows(), matrix.rows()),
        second_(space + 3 * matrix.size(), matrix.rows(), matrix.rows()),
        values_(space + 4 * matrix.size(), matrix.rows()) {
    attn_dense::find_singular_values(matrix.rows(), matrix.data(), space);
  }
  const MatrixMap& left() const { return left_; }
  const MatrixMap& right() const { return right_; }
  const Eigen::Map<Eigen::VectorXd>& values() const { return values_; }
  // Free parts of the workspace.
  MatrixMap& first() { return first_; }
  MatrixMap& second() { return second_; }

 private:
  MatrixMap left_, right_, first_, second_;
  Eigen::Map<Eigen::VectorXd> values_;
};

struct Truncation {
  int64_t batch, heads, len, dim, rank;
  std::vector<int64_t, Recycled<int64_t>> lengths;

  int64_t valid(int64_t head) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(head / heads)];
  }
  bool cuts(int64_t n) const { return rank < n; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(dim)); }
  // The weights of one head and their decomposition or gradient, in double.
  int64_t work_reals() const {
    const int64_t rest = cuts(len) ? attn_dense::singular_value_doubles(len) : len * len;
    return (len * len + rest) * static_cast<int64_t>(sizeof(double) / sizeof(real));
  }
  double forward_flops(int64_t n) const {
    const auto size = static_cast<double>(n), d = static_cast<double>(dim);
    return 2 * size * size * d +
           (cuts(n) ? 22 * size * size * size + kept(n) : 2 * size * size * d);
  }
  double backward_flops(int64_t n) const {
    const auto size = static_cast<double>(n), d = static_cast<double>(dim);
    return 8 * size * size * d +
           (cuts(n) ? 30 * size * size * size + kept(n) : 2 * size * size * d);
  }
  double kept(int64_t n) const { return 4 * static_cast<double>(n * dim * rank); }
};

Matrix rows_of(const Tensor& x, int64_t head, int64_t count) {
  const int64_t d = x.dim(3);
  Matrix rows(count, d);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t c = 0; c < d; ++c)
      rows(i, c) = static_cast<double>(x[(head * x.dim(2) + i) * d + c]);
  return rows;
}

void add_rows(const Matrix& from, int64_t head, const Tensor& to) {
  const int64_t d = to.dim(3);
  for (int64_t i = 0; i < from.rows(); ++i)
    for (int64_t c = 0; c < d; ++c)
      to[(head * to.dim(2) + i) * d + c] += static_cast<real>(from(i, c));
}

void fill_weights(const Truncation& t, const Matrix& q, const Matrix& k, MatrixMap& weights) {
  multiply(Side::plain, given(q), Side::transposed, given(k), weights.data());
  weights *= t.scale();
  for (Eigen::Index i = 0; i < weights.rows(); ++i) {
    weights.row(i).array() -= weights.row(i).maxCoeff();
    weights.row(i) = weights.row(i).array().exp();
    weights.row(i) /= weights.row(i).sum();
  }
}

// Sets rows of a head to NaN.
void spoil_rows(int64_t head, int64_t count, const Tensor& x) {
  const int64_t d = x.dim(3);
  std::fill_n(x.data() + head * x.dim(2) * d, count * d, std::numeric_limits<real>::quiet_NaN());
}

// weights·x, or with `transposed` weightsᵀ·x, of rank `rank`.
Matrix truncated_product(const SingularValues& svd, int64_t rank, bool transposed,
                         const Matrix& x) {
  const Given left = first_columns(transposed ? svd.right() : svd.left(), rank);
  const Given right = first_columns(transposed ? svd.left() : svd.right(), rank);
  Matrix inner = times(Side::transposed, right, given(x));
  for (Eigen::Index i = 0; i < rank; ++i) inner.row(i) *= svd.values()(i);
  return times(Side::plain, left, given(inner));
}

// The gradient of the weights, from that of the truncated ones: replaces svd.first().
void through_truncation(SingularValues& svd, int64_t rank) {
  MatrixMap &m = svd.first(), &half = svd.second();
  multiply(Side::transposed, given(svd.left()), Side::plain, given(m), half.data());
  multiply(Side::plain, given(half), Side::plain, given(svd.right()), m.data());
  const auto& values = svd.values();
  const int64_t n = values.size();
  const double least = kLeastGap * values(0) * values(0);
  m.bottomRightCorner(n - rank, n - rank).setZero();
  for (int64_t i = 0; i < rank; ++i)
    for (int64_t j = rank; j < n; ++j) {
      const double kept = values(i), dropped = values(j);
      const double gap = kept * kept - dropped * dropped;
      const double own = gap > least ? kept * kept / gap : 1,
                   other = gap > least ? kept * dropped / gap : 0;
      const double above = m(i, j), below = m(j, i);
      m(i, j) = own * above + other * below;
      m(j, i) = own * below + other * above;
    }
  multiply(Side::plain, given(svd.left()), Side::plain, given(m), half.data());
  multiply(Side::plain, given(half), Side::transposed, given(svd.right()), m.data());
}

// The softmax's backward. of_weights is overwritten.
void add_logit_gradients(const Truncation& t, const Matrix& q, const Matrix& k,
                         const MatrixMap& weights, MatrixMap& of_weights, int64_t head,
                         std::span<Tensor> grads) {
  of_weights.array() *= weights.array();
  const Eigen::VectorXd sums = of_weights.rowwise().sum();
  of_weights -= sums.asDiagonal() * weights;
  of_weights *= t.scale();
  if (grads[0].defined()) add_rows(times(Side::plain, given(of_weights), given(k)), head, grads[0]);
  if (grads[1].defined())
    add_rows(times(Side::transposed, given(of_weights), given(q)), head, grads[1]);
}

void head_backward(const Truncation& t, const Tensor (&x)[3], const Tensor& grad, int64_t head,
                   real* work, std::span<Tensor> grads) {
  const int64_t n = t.valid(head);
  const Matrix q = rows_of(x[0], head, n), k = rows_of(x[1], head, n), v = rows_of(x[2], head, n),
               g = rows_of(grad, head, n);
  auto* const space = reinterpret_cast<double*>(work);
  MatrixMap weights(space, n, n);
  fill_weights(t, q, k, weights);
  if (!weights.allFinite()) {
    for (const Tensor& to : grads)
      if (to.defined()) spoil_rows(head, n, to);
    return;
  }
  if (t.cuts(n)) {
    SingularValues svd(weights, space + n * n);
    if (grads[2].defined()) add_rows(truncated_product(svd, t.rank, true, g), head, grads[2]);
    multiply(Side::plain, given(g), Side::transposed, given(v), svd.first().data());
    through_truncation(svd, t.rank);
    add_logit_gradients(t, q, k, weights, svd.first(), head, grads);
  } else {
    if (grads[2].defined())
      add_rows(times(Side::transposed, given(weights), given(g)), head, grads[2]);
    MatrixMap of_weights(space + n * n, n, n);
    multiply(Side::plain, given(g), Side::transposed, given(v), of_weights.data());
    add_logit_gradients(t, q, k, weights, of_weights, head, grads);
  }
  count_flops(t.backward_flops(n));
}

}  // namespace

Var truncated_attention(const Var& q, const Var& k, const Var& v, int64_t rank,
                        std::span<const int64_t> lengths) {
  const Truncation t{q.dim(0), q.dim(1), q.dim(2),
                     q.dim(3), rank,     {lengths.begin(), lengths.end()}};
  ATTN_CHECK(k.shape() == q.shape() && v.shape() == q.shape(), "q {}, k {} and v {} do not fit",
             q.shape().str(), k.shape().str(), v.shape().str());
  const Tensor qt = q.value(), kt = k.value(), vt = v.value(), out = Tensor::zeros(q.shape());
  run_tasks(t.batch * t.heads, t.work_reals(), [&](int64_t head, real* work) {
    const Mark mark(Part::products);
    const int64_t n = t.valid(head);
    if (n == 0) return;
    auto* const space = reinterpret_cast<double*>(work);
    MatrixMap weights(space, n, n);
    fill_weights(t, rows_of(qt, head, n), rows_of(kt, head, n), weights);
    if (!weights.allFinite()) return spoil_rows(head, n, out);
    const Matrix values = rows_of(vt, head, n);
    add_rows(t.cuts(n)
                 ? truncated_product(SingularValues(weights, space + n * n), rank, false, values)
                 : times(Side::plain, given(weights), given(values)),
             head, out);
    count_flops(t.forward_flops(n));
  });
  return custom_op(out, {q, k, v}, [=](const Tensor& grad, std::span<Tensor> grads) {
    const Tensor inputs[3] = {qt, kt, vt};
    run_tasks(t.batch * t.heads, t.work_reals(), [&](int64_t head, real* work) {
      const Mark mark(Part::products);
      if (t.valid(head) > 0) head_backward(t, inputs, grad, head, work, grads);
    });
  });
}

Cost truncated_cost(const AttentionShape& s, int64_t rank) {
  const Truncation t{s.batch, s.heads, s.kv_len, s.head_dim, rank, {}};
  const auto heads = static_cast<double>(s.batch * s.heads), len = static_cast<double>(s.kv_len),
             rows = sizeof(real) * heads * len * static_cast<double>(s.head_dim);
  return {
      .flops = heads * t.forward_flops(s.kv_len),
      .backward_flops = heads * t.backward_flops(s.kv_len),
      .bytes = 4 * rows,  // the weights stay in a workspace
      .peak_bytes = rows + static_cast<double>(workspace_bytes(s.batch * s.heads, t.work_reals()))};
}

}  // namespace attn
