// Thresholds, weights and gradients of entmax; see entmax_rows.h. About five passes over a row.
// With y = (α-1)·(z - max z) ≤ 0, θ lies in [-1, 0), and Σ [y - θ]₊^(1/(α-1)) is convex in θ for α
// ≤ 2: Newton's steps from -1 on rise to the root.
#include "variants/normalisers/entmax_rows.h"

#include <algorithm>
#include <cmath>

#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kLanes = 16;   // sums side by side, which the compiler keeps in vectors
constexpr int kMostSteps = 100;  // some 5 are enough, and about log n where α is close to 1

// Two sums over i < n: add(i, a, b) adds to both.
template <class Add>
void lane_sums(int64_t n, double& first, double& second, const Add& add) {
  real a[kLanes] = {}, b[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) add(i + l, a[l], b[l]);
  for (; i < n; ++i) add(i, a[i % kLanes], b[i % kLanes]);
  first = second = 0;
  for (int64_t l = 0; l < kLanes; ++l)
    first += static_cast<double>(a[l]), second += static_cast<double>(b[l]);
}

// Gathers factor·(z - top) of the entries above -1; returns how many.
int64_t gather(int64_t n, const real* z, real factor, real top, real* y) {
  int64_t count = 0;
  for (int64_t first = 0; first < n; first += kLanes) {
    const int64_t width = std::min(kLanes, n - first);
    bool any = false;
    for (int64_t l = 0; l < width; ++l) any |= factor * (z[first + l] - top) > -1;
    if (!any) continue;
    for (int64_t l = 0; l < width; ++l) {
      y[count] = factor * (z[first + l] - top);
      count += y[count] > -1;
    }
  }
  return count;
}

// f(θ) = Σ [y - θ]₊^power, and the size of its slope.
struct Sums {
  double weights, slope;
};
Sums sums_at(int64_t n, const real* y, double theta, double power) {
  Sums sums{};
  const auto t = static_cast<real>(theta);
  if (power == 1) {
    lane_sums(n, sums.weights, sums.slope, [=](int64_t i, real& a, real& b) {
      a += y[i] > t ? y[i] - t : real(0);
      b += y[i] > t ? real(1) : real(0);
    });
  } else if (power == 2) {
    lane_sums(n, sums.weights, sums.slope, [=](int64_t i, real& a, real& b) {
      const real over = y[i] > t ? y[i] - t : real(0);
      a += over * over;
      b += 2 * over;
    });
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const double over = static_cast<double>(y[i]) - theta;
      if (over <= 0) continue;
      const double lower = std::pow(over, power - 1);
      sums.weights += lower * over;
      sums.slope += power * lower;
    }
  }
  return sums;
}

double threshold(int64_t n, const real* y, double power) {
  double theta = -1;
  for (int step = 0; step < kMostSteps; ++step) {
    const Sums at = sums_at(n, y, theta, power);
    const double rise = (at.weights - 1) / at.slope;
    theta += rise;
    if (!(rise > 2 * static_cast<double>(kEpsilon))) break;  // and where a row is NaN
  }
  return theta;
}

}  // namespace

void EntmaxWeights::weigh_row(int64_t n, real* z, real* room) const {
  const real top = max_in_row(z, n);
  if (alpha_ == 1) {
    const real factor = 1 / exp_row(n, z, 1, top, z);
    for (int64_t j = 0; j < n; ++j) z[j] *= factor;
    return;
  }
  const auto factor = static_cast<real>(alpha_ - 1);
  const double power = 1 / (alpha_ - 1);
  const int64_t count = gather(n, z, factor, top, room);
  const double theta = threshold(count, room, power);
  const auto t = static_cast<real>(theta);
  if (power == 1 || power == 2) {
    const bool squared = power == 2;
    for (int64_t j = 0; j < n; ++j) {
      const real over = factor * (z[j] - top) - t, weight = over > 0 ? over : real(0);
      z[j] = squared ? weight * weight : weight;
    }
    return;
  }
  double total = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double over = static_cast<double>(factor * (z[j] - top)) - theta;
    z[j] = over > 0 ? static_cast<real>(std::pow(over, power)) : real(0);
    total += static_cast<double>(z[j]);
  }
  for (int64_t j = 0; j < n; ++j) z[j] /= static_cast<real>(total);
}

void EntmaxWeights::weigh(const RowStrip& x) const {
  for (int64_t r = 0; r < x.rows; ++r)
    if (x.counts[r] > 0) weigh_row(x.counts[r], x.row(0, r), x.room);
}

void EntmaxWeights::gradient(const RowStrip& x, const RowStrip&, const RowStrip& g, double*) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    real *const s = x.row(0, r), *const grad = g.row(0, r);
    if (alpha_ == 2)
      for (int64_t j = 0; j < n; ++j) s[j] = s[j] > 0 ? real(1) : real(0);
    else if (alpha_ == 1.5)
      for (int64_t j = 0; j < n; ++j) s[j] = std::sqrt(s[j]);
    else if (alpha_ != 1)
      for (int64_t j = 0; j < n; ++j)
        s[j] = s[j] > 0 ? std::pow(s[j], static_cast<real>(2 - alpha_)) : real(0);
    double total = 0, weighted = 0;
    lane_sums(n, total, weighted, [=](int64_t j, real& a, real& b) {
      a += s[j];
      b += s[j] * grad[j];
    });
    const auto mean = static_cast<real>(total > 0 ? weighted / total : 0);
    for (int64_t j = 0; j < n; ++j) grad[j] = s[j] * (grad[j] - mean);
  }
}

}  // namespace attn
