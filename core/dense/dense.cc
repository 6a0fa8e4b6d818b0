// See dense.h.
#include "core/dense/dense.h"

#include <Eigen/Core>
#include <Eigen/QR>

namespace attn_dense {
namespace {

using Matrix = Eigen::MatrixXd;
using Given = Eigen::Map<const Matrix>;
using Place = Eigen::Map<Matrix>;

}  // namespace

void product(int64_t rows, int64_t inner, int64_t cols, Side of_a, const double* a, Side of_b,
             const double* b, double* c) {
  const bool turn_a = of_a == Side::transposed, turn_b = of_b == Side::transposed;
  const Given left(a, turn_a ? inner : rows, turn_a ? rows : inner);
  const Given right(b, turn_b ? cols : inner, turn_b ? inner : cols);
  Place to(c, rows, cols);
  if (turn_a && turn_b)
    to.noalias() = left.transpose() * right.transpose();
  else if (turn_a)
    to.noalias() = left.transpose() * right;
  else if (turn_b)
    to.noalias() = left * right.transpose();
  else
    to.noalias() = left * right;
}

void solve_any_rank(int64_t n, int64_t cols, Side of_a, const double* a, double* b) {
  const Eigen::CompleteOrthogonalDecomposition<Matrix> solver{Given(a, n, n)};
  Place to(b, n, cols);
  if (of_a == Side::plain)
    to = solver.solve(to).eval();
  else
    to = solver.transpose().solve(to).eval();
}

void orthonormalise(int64_t n, double* x) {
  Place place(x, n, n);
  const Eigen::HouseholderQR<Matrix> qr(place);
  place = qr.householderQ() * Matrix::Identity(n, n);
  for (int64_t j = 0; j < n; ++j)
    if (qr.matrixQR()(j, j) < 0) place.col(j) = -place.col(j);
}

}  // namespace attn_dense
