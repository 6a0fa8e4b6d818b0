// See kendall.h.
#include "harness/compare/kendall.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/base/check.h"
#include "harness/measure/statistics.h"

namespace attn {
namespace {

int direction(double difference) { return (difference > 0) - (difference < 0); }

}  // namespace

std::optional<double> kendall_tau(const std::vector<double>& x, const std::vector<double>& y) {
  ATTN_CHECK(x.size() == y.size(), "{} and {} numbers make no pairs", x.size(), y.size());
  int64_t agree = 0, apart_x = 0, apart_y = 0;
  for (size_t i = 0; i < x.size(); i++)
    for (size_t j = i + 1; j < x.size(); j++) {
      const int of_x = direction(x[i] - x[j]), of_y = direction(y[i] - y[j]);
      agree += of_x * of_y;
      apart_x += of_x != 0;
      apart_y += of_y != 0;
    }
  if (apart_x == 0 || apart_y == 0) return std::nullopt;
  return static_cast<double>(agree) /
         std::sqrt(static_cast<double>(apart_x) * static_cast<double>(apart_y));
}

TauInterval tau_interval(double tau, int64_t count) {
  ATTN_CHECK(count > 4, "a tau of {} has no interval", count);
  const auto n = static_cast<double>(count);
  const double most = 1 - 2 / (n * (n - 1));
  const double middle = std::atanh(std::clamp(tau, -most, most));
  const double reach = student_t_975(static_cast<size_t>(count - 2)) * std::sqrt(0.437 / (n - 4));
  return {.low = std::tanh(middle - reach), .high = std::tanh(middle + reach)};
}

}  // namespace attn
