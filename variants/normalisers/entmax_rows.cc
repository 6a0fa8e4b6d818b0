// Thresholds, weights and gradients of entmax; see entmax_rows.h. About five passes over a row.
// With y = (α-1)·(z - max z) ≤ 0, θ lies in [-1, 0), and Σ [y - θ]₊^(1/(α-1)) is convex in θ for α
// ≤ 2: Newton's steps from -1 on rise to the root.
#include "variants/normalisers/entmax_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kLanes = 16;
constexpr int kMostSteps = 100;  // some 5 are enough, and about log n where α is close to 1

// Numbers side by side: sums of an array of them would live in memory, not in registers.
using Lanes = real __attribute__((vector_size(kLanes * sizeof(real))));

// By reference always: how a call passes a vector by value depends on the instruction set.
void load(const real* x, Lanes& to) { std::memcpy(&to, x, sizeof(to)); }

// Two sums over i < n. add(first, second, a, b) adds to a and b what kLanes numbers of each row
// give; behind the end of the rows stand zeros, or `last` in the first one.
template <class Add>
void add_up(int64_t n, const real* x, real last, const real* y, const Add& add, double& of_a,
            double& of_b) {
  Lanes a = {}, b = {};
  int64_t i = 0;
  Lanes of_x, of_y;
  for (; i + kLanes <= n; i += kLanes) {
    load(x + i, of_x), load(y + i, of_y);
    add(of_x, of_y, a, b);
  }
  if (i < n) {
    real rest[kLanes], others[kLanes] = {};
    std::fill_n(rest, kLanes, last);
    std::copy(x + i, x + n, rest);
    std::copy(y + i, y + n, others);
    load(rest, of_x), load(others, of_y);
    add(of_x, of_y, a, b);
  }
  of_a = of_b = 0;
  for (int64_t l = 0; l < kLanes; ++l) {
    of_a += static_cast<double>(a[l]);
    of_b += static_cast<double>(b[l]);
  }
}

// f(θ) = Σ [y - θ]₊^power and Σ [y - θ]₊^(power - 1).
struct Sums {
  double weights, lower;
};
Sums sums_at(int64_t n, const real* y, double theta, double power) {
  Sums sums{};
  const auto t = static_cast<real>(theta);
  const Lanes zero = {}, one = zero + 1;
  if (power == 1) {
    const auto add = [=](const Lanes& x, const Lanes&, Lanes& a, Lanes& b) {
      const Lanes over = x - t;
      a += over > 0 ? over : zero;
      b += over > 0 ? one : zero;
    };
    add_up(n, y, -2, y, add, sums.weights, sums.lower);
  } else if (power == 2) {
    const auto add = [=](const Lanes& x, const Lanes&, Lanes& a, Lanes& b) {
      const Lanes shifted = x - t, over = shifted > 0 ? shifted : zero;
      a += over * over;
      b += over;
    };
    add_up(n, y, -2, y, add, sums.weights, sums.lower);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const double over = static_cast<double>(y[i]) - theta;
      if (over <= 0) continue;
      const double lower = std::pow(over, power - 1);
      sums.weights += lower * over;
      sums.lower += lower;
    }
  }
  return sums;
}

// The root of the norm f^(1/power) = 1, which is convex in θ too and closer to a line than f.
double threshold(int64_t n, const real* y, double power) {
  double theta = -1;
  for (int step = 0; step < kMostSteps; ++step) {
    const Sums at = sums_at(n, y, theta, power);
    const double root = power == 2 ? std::sqrt(at.weights) : std::pow(at.weights, 1 - 1 / power);
    const double rise = (at.weights - root) / at.lower;
    theta += rise;
    if (!(rise > 2 * static_cast<double>(kEpsilon))) break;  // and where a row is NaN
  }
  return theta;
}

}  // namespace

void EntmaxWeights::weigh_row(int64_t n, real* z) const {
  const real top = max_in_row(z, n);
  if (alpha_ == 1) {
    const real factor = 1 / exp_row(n, z, 1, top, z);
    for (int64_t j = 0; j < n; ++j) z[j] *= factor;
    return;
  }
  const auto factor = static_cast<real>(alpha_ - 1);
  for (int64_t j = 0; j < n; ++j) z[j] = factor * (z[j] - top);
  const double power = 1 / (alpha_ - 1), theta = threshold(n, z, power);
  const auto t = static_cast<real>(theta);
  if (power == 1) {
    for (int64_t j = 0; j < n; ++j) z[j] = z[j] > t ? z[j] - t : real(0);
  } else if (power == 2) {
    for (int64_t j = 0; j < n; ++j) {
      const real over = z[j] > t ? z[j] - t : real(0);
      z[j] = over * over;
    }
  } else {
    double total = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double over = static_cast<double>(z[j]) - theta;
      z[j] = over > 0 ? static_cast<real>(std::pow(over, power)) : real(0);
      total += static_cast<double>(z[j]);
    }
    for (int64_t j = 0; j < n; ++j) z[j] /= static_cast<real>(total);
  }
}

void EntmaxWeights::weigh(const RowStrip& x) const {
  for (int64_t r = 0; r < x.rows; ++r)
    if (x.counts[r] > 0) weigh_row(x.counts[r], x.row(0, r));
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
    const auto add = [](const Lanes& x_lanes, const Lanes& y_lanes, Lanes& a, Lanes& b) {
      a += x_lanes;
      b += x_lanes * y_lanes;
    };
    add_up(n, s, 0, grad, add, total, weighted);
    const auto mean = static_cast<real>(total > 0 ? weighted / total : 0);
    for (int64_t j = 0; j < n; ++j) grad[j] = s[j] * (grad[j] - mean);
  }
}

}  // namespace attn
