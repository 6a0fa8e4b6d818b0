// See ranks.h. Singular values by Eigen's divide and conquer, in double.
#include "harness/measure/ranks.h"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/real.h"

namespace attn {
namespace {

// From the largest to the smallest.
Eigen::VectorXd singular_values(const std::vector<double>& matrix, int64_t rows) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::BDCSVD<Matrix>(Eigen::Map<const Matrix>(matrix.data(), rows, rows))
      .singularValues();
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
