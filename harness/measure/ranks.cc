// See ranks.h. Singular values in double, by a method that no matrix defeats.
#include "harness/measure/ranks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/real.h"
#include "core/dense/dense.h"

namespace attn {
double effective_rank(const std::vector<double>& matrix, int64_t rows) {
  const std::vector<double> values = attn_dense::singular_values_of(rows, matrix.data());
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  if (!(total > 0)) return 0;
  double entropy = 0;
  for (const double value : values) {
    const double share = value / total;
    if (share > 0) entropy -= share * std::log(share);
  }
  return std::exp(entropy);
}

int64_t numerical_rank(const std::vector<double>& matrix, int64_t rows) {
  const std::vector<double> values = attn_dense::singular_values_of(rows, matrix.data());
  if (values.empty()) return 0;
  const double least =
      static_cast<double>(rows) * std::numeric_limits<real>::epsilon() * values.front();
  return std::count_if(values.begin(), values.end(), [&](double value) { return value > least; });
}

}  // namespace attn
