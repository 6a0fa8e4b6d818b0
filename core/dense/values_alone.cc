// See dense.h. The matrix A is reduced to two diagonals d and e; the matrix [[0, A], [Aᵀ, 0]],
// whose eigenvalues are the singular values and their negatives, is then d_1, e_1, d_2, … beside a
// diagonal of zeros (Golub and Kahan 1965). Eigen's divide and conquer makes NaN of uniform weights
// of 512 positions.
#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <cmath>

#include "core/dense/dense.h"

namespace attn_dense {

std::vector<double> singular_values_of(int64_t n, const double* x) {
  using Matrix = Eigen::MatrixXd;
  const Eigen::Map<const Matrix> given(x, n, n);
  if (n == 0 || !given.allFinite()) return {};
  if (n == 1) return {std::abs(x[0])};
  const Eigen::internal::UpperBidiagonalization<Matrix> reduced{Matrix(given)};
  Eigen::VectorXd beside(2 * n - 1);
  for (int64_t i = 0; i < n; ++i) {
    beside(2 * i) = reduced.bidiagonal().diagonal()(i);
    if (i + 1 < n) beside(2 * i + 1) = reduced.bidiagonal().diagonal(1)(i);
  }
  Eigen::SelfAdjointEigenSolver<Matrix> solver;
  solver.computeFromTridiagonal(Eigen::VectorXd::Zero(2 * n), beside, Eigen::EigenvaluesOnly);
  const Eigen::VectorXd values = solver.eigenvalues().tail(n).reverse().cwiseMax(0);
  return {values.begin(), values.end()};
}

}  // namespace attn_dense
