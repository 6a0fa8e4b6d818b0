// See effective_rank.h. Singular values by Eigen's divide and conquer.
#include "harness/measure/effective_rank.h"

#include <Eigen/SVD>
#include <cmath>

namespace attn {

double effective_rank(const std::vector<double>& matrix, int64_t rows) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::BDCSVD<Matrix> decomposed(Eigen::Map<const Matrix>(matrix.data(), rows, rows));
  const double total = decomposed.singularValues().sum();
  if (!(total > 0)) return 0;
  double entropy = 0;
  for (const double value : decomposed.singularValues()) {
    const double share = value / total;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

}  // namespace attn
