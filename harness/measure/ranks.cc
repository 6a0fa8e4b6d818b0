// See ranks.h. Singular values in double, by a method that no matrix defeats.
#include "harness/measure/ranks.h"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/real.h"

namespace attn {
namespace {

// From the largest to the smallest; none where a number is not finite. A is reduced to two
// diagonals d and e; the matrix [[0, A], [Aᵀ, 0]], whose eigenvalues are the singular values and
// their negatives, is then d_1, e_1, d_2, … beside a diagonal of zeros (Golub and Kahan 1965).
// Eigen's divide and conquer makes NaN of uniform weights of 512 positions.
Eigen::VectorXd singular_values(const std::vector<double>& matrix, int64_t rows) {
  using Matrix = Eigen::MatrixXd;
  const Eigen::Map<const Matrix> given(matrix.data(), rows, rows);
  if (rows == 0 || !given.allFinite()) return {};
  if (rows == 1) return given.cwiseAbs().col(0);
  const Eigen::internal::UpperBidiagonalization<Matrix> reduced{Matrix(given)};
  Eigen::VectorXd beside(2 * rows - 1);
  for (int64_t i = 0; i < rows; ++i) {
    beside(2 * i) = reduced.bidiagonal().diagonal()(i);
    if (i + 1 < rows) beside(2 * i + 1) = reduced.bidiagonal().diagonal(1)(i);
  }
  Eigen::SelfAdjointEigenSolver<Matrix> solver;
  solver.computeFromTridiagonal(Eigen::VectorXd::Zero(2 * rows), beside, Eigen::EigenvaluesOnly);
  return solver.eigenvalues().tail(rows).reverse().cwiseMax(0);
}

}  // namespace

double effective_rank(const std::vector<double>& matrix, int64_t rows) {
  const Eigen::VectorXd values = singular_values(matrix, rows);
  const double total = values.sum();
  if (!(total > 0)) return 0;
  double entropy = 0;
  for (const double value : values) {
    const double share = value / total;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

int64_t numerical_rank(const std::vector<double>& matrix, int64_t rows) {
  const Eigen::VectorXd values = singular_values(matrix, rows);
  if (values.size() == 0) return 0;
  const double least = static_cast<double>(rows) * std::numeric_limits<real>::epsilon() * values(0);
  return std::count_if(values.begin(), values.end(), [&](double value) { return value > least; });
}

}  // namespace attn
