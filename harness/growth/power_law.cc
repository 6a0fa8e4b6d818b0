// See power_law.h. Draper and Smith, Applied Regression Analysis, chapters 1 and 3.
#include "harness/growth/power_law.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/check.h"
#include "harness/measure/statistics.h"

namespace attn {

PowerLaw::PowerLaw(const std::vector<LengthPoint>& points) {
  std::set<double> lengths;
  for (const auto& [length, value] : points) {
    ATTN_CHECK(length > 0 && value > 0, "no logarithm of length {} or value {}", length, value);
    lengths.insert(length);
  }
  ATTN_CHECK(points.size() >= 3 && lengths.size() >= 2,
             "a power law needs three points of two lengths, got {} of {}", points.size(),
             lengths.size());
  count_ = static_cast<double>(points.size());
  for (const auto& [length, value] : points) {
    mean_x_ += std::log(length) / count_;
    mean_y_ += std::log(value) / count_;
  }
  double product = 0;
  for (const auto& [length, value] : points) {
    const double x = std::log(length) - mean_x_;
    spread_ += x * x;
    product += x * (std::log(value) - mean_y_);
  }
  slope_ = product / spread_;

  // The quadratic term is fitted to the residuals by the part of x² that is orthogonal to the line.
  double cube = 0;
  for (const LengthPoint& point : points) cube += std::pow(std::log(point.length) - mean_x_, 3);
  double squares = 0, bends = 0, along = 0;
  for (const auto& [length, value] : points) {
    const double x = std::log(length) - mean_x_;
    const double residual = std::log(value) - mean_y_ - slope_ * x;
    const double bend = x * x - spread_ / count_ - cube / spread_ * x;
    squares += residual * residual;
    bends += bend * bend;
    along += bend * residual;
  }
  deviation_ = std::sqrt(squares / (count_ - 2));
  if (lengths.size() < 3 || count_ < 4) return;
  const double curve = along / bends;
  const double rest = std::max(0.0, squares - curve * along) / (count_ - 3);
  const double error = std::sqrt(rest / bends);
  // Rounding of logarithms is no curve.
  constexpr double kRounding = 1e-12;
  const double t = std::abs(curve) / std::max(error, kRounding);
  curvature_p_ = 2 * student_t_tail(t, count_ - 3);
}

double PowerLaw::exponent_reach() const {
  return student_t_975(static_cast<size_t>(count_) - 2) * deviation_ / std::sqrt(spread_);
}

double PowerLaw::constant() const { return std::exp(mean_y_ - slope_ * mean_x_); }

PowerLaw::Prediction PowerLaw::at(double length) const {
  const double x = std::log(length) - mean_x_;
  const double middle = mean_y_ + slope_ * x;
  const double error = deviation_ * std::sqrt(1 + 1 / count_ + x * x / spread_);
  const double reach = student_t_975(static_cast<size_t>(count_) - 2) * error;
  return {
      .value = std::exp(middle), .low = std::exp(middle - reach), .high = std::exp(middle + reach)};
}

}  // namespace attn
