// The pseudo-inverse of the weights between landmarks times values, by a complete orthogonal
// decomposition in double: it solves, so that the residual stays small however close to singular
// the weights are. About 4/3·m³ FLOPs; see landmarks.h.
#include <algorithm>
#include <vector>

#include <Eigen/QR>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "variants/lowrank/landmarks.h"

namespace attn {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                        0, Eigen::OuterStride<>>;
using Solver = Eigen::CompleteOrthogonalDecomposition<Matrix>;

Matrix rows_of(const real* x, int64_t rows, int64_t cols, int64_t row) {
  return Rows(x, rows, cols, Eigen::OuterStride<>(row)).cast<double>();
}

void store(const Matrix& from, real* to, int64_t row) {
  for (int64_t i = 0; i < from.rows(); ++i)
    for (int64_t c = 0; c < from.cols(); ++c) to[i * row + c] += static_cast<real>(from(i, c));
}

}  // namespace

double exact_inverse_flops(int64_t m, int64_t dim) {
  const auto size = static_cast<double>(m);
  return size * size * (4.0 / 3 * size + 3 * static_cast<double>(dim));
}

Var exact_inverse_product(const Var& weights, const Var& values, std::span<const int64_t> lengths) {
  const Tensor a = weights.value(), b = values.value(), out = Tensor::zeros(values.shape());
  const int64_t m = a.dim(3), d = b.dim(3), heads = a.dim(1);
  const auto used = [=, own = std::vector<int64_t>(lengths.begin(), lengths.end())](int64_t head) {
    return own.empty() ? m : std::min(m, own[static_cast<size_t>(head / heads)]);
  };
  const auto solver_of = [=](int64_t head) {
    return Solver(rows_of(a.data() + head * m * m, used(head), used(head), m));
  };
  run_tasks(a.dim(0) * heads, 0, [&](int64_t head, real*) {
    const Mark mark(Part::products);
    if (used(head) == 0) return;
    store(solver_of(head).solve(rows_of(b.data() + head * m * d, used(head), d, d)),
          out.data() + head * m * d, d);
    count_flops(exact_inverse_flops(used(head), d));
  });
  return custom_op(out, {weights, values}, [=](const Tensor& grad, std::span<Tensor> grads) {
    run_tasks(a.dim(0) * heads, 0, [&](int64_t head, real*) {
      const Mark mark(Part::products);
      const int64_t n = used(head);
      if (n == 0) return;
      const Matrix back =
          solver_of(head).transpose().solve(rows_of(grad.data() + head * m * d, n, d, d));
      if (grads[1].defined()) store(back, grads[1].data() + head * m * d, d);
      if (grads[0].defined())
        store(-back * rows_of(out.data() + head * m * d, n, d, d).transpose(),
              grads[0].data() + head * m * m, m);
      count_flops(exact_inverse_flops(n, d) +
                  2 * static_cast<double>(grads[0].defined() ? n * n * d : 0));
    });
  });
}

}  // namespace attn
