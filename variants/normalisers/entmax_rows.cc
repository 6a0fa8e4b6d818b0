// Thresholds, weights and gradients of entmax; see entmax_rows.h. About five passes over a row.
// With y = (α-1)·(z - max z) ≤ 0, θ lies in [-1, 0), and Σ [y - θ]₊^(1/(α-1)) is convex in θ for α
// ≤ 2: Newton's steps from -1 on rise to the root.
#include "variants/normalisers/entmax_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/simd/row_ops.h"
#include "core/simd/rows.h"

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

// Calls body(k) with a constant k: the power, where that is a whole number up to 8, as for α = 1 +
// 1/k up to the rounding of α, else 0. Whole powers are products, vectorised.
template <class Body>
auto with_power(double power, const Body& body) {
  const auto is = [power](int k) {
    return std::abs(power - k) <= 4 * static_cast<double>(kEpsilon) * k;
  };
  if (is(1)) return body(std::integral_constant<int, 1>());
  if (is(2)) return body(std::integral_constant<int, 2>());
  if (is(3)) return body(std::integral_constant<int, 3>());
  if (is(4)) return body(std::integral_constant<int, 4>());
  if (is(5)) return body(std::integral_constant<int, 5>());
  if (is(6)) return body(std::integral_constant<int, 6>());
  if (is(7)) return body(std::integral_constant<int, 7>());
  if (is(8)) return body(std::integral_constant<int, 8>());
  return body(std::integral_constant<int, 0>());
}

// lower = over^(kPower - 1), 0 where `over` is. For vectors and numbers.
template <int kPower, class X>
void raise(const X& over, X& lower) {
  const X zero = {}, one = zero + 1;
  lower = kPower == 1 ? (over > 0 ? one : zero) : over;
  for (int i = 2; i < kPower; ++i) lower *= over;
}

// f(θ) = Σ [y - θ]₊^power and Σ [y - θ]₊^(power - 1).
struct Sums {
  double weights, lower;
};
template <int kPower>
Sums sums_at(int64_t n, const real* y, double theta, double power) {
  Sums sums{};
  if constexpr (kPower > 0) {
    const auto t = static_cast<real>(theta);
    const Lanes zero = {};
    const auto add = [=](const Lanes& x, const Lanes&, Lanes& a, Lanes& b) {
      const Lanes shifted = x - t, over = shifted > 0 ? shifted : zero;
      Lanes lower;
      raise<kPower>(over, lower);
      a += lower * over;
      b += lower;
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
template <int kPower>
double threshold(int64_t n, const real* y, double power) {
  double theta = -1;
  for (int step = 0; step < kMostSteps; ++step) {
    const Sums at = sums_at<kPower>(n, y, theta, power);
    const double root = kPower == 2 ? std::sqrt(at.weights) : std::pow(at.weights, 1 - 1 / power);
    const double rise = (at.weights - root) / at.lower;
    theta += rise;
    if (!(rise > 2 * static_cast<double>(kEpsilon))) break;  // and where a row is NaN
  }
  return theta;
}

real over_at(real y, real threshold) { return y > threshold ? y - threshold : real(0); }

// The weights of y = (α-1)·(z - max z), which may be y; `slopes`, if not null, may be y too, but
// not the weights, and get weights^(2-α) on the support.
template <int kPower>
void weigh_shifted(int64_t n, const real* y, double power, real* weights, real* slopes) {
  const double theta = threshold<kPower>(n, y, power);
  const auto t = static_cast<real>(theta);
  if constexpr (kPower > 0) {
    ATTN_INDEPENDENT
    for (int64_t j = 0; j < n; ++j) {
      const real over = over_at(y[j], t);
      real lower;
      raise<kPower>(over, lower);
      weights[j] = lower * over;
    }
    ATTN_INDEPENDENT
    for (int64_t j = 0; slopes && j < n; ++j) raise<kPower>(over_at(y[j], t), slopes[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) {
      const double over = static_cast<double>(y[j]) - theta;
      const double lower = over > 0 ? std::pow(over, power - 1) : 0;
      weights[j] = static_cast<real>(lower * over);
      if (slopes) slopes[j] = static_cast<real>(lower);
    }
  }
  if (kPower == 1 || kPower == 2) return;  // a rounded θ hardly changes their sum
  const double total = static_cast<double>(sum_in_row(weights, n));
  const auto factor = static_cast<real>(1 / total);
  for (int64_t j = 0; j < n; ++j) weights[j] *= factor;
  const auto of_slopes = static_cast<real>(std::pow(total, 1 / power - 1));
  for (int64_t j = 0; slopes && j < n; ++j) slopes[j] *= of_slopes;
}

}  // namespace

void EntmaxWeights::weigh_row(int64_t n, real* z, real* weights, real* slopes) const {
  const real top = max_in_row(z, n);
  if (alpha_ == 1) {
    const real factor = 1 / exp_row(n, z, 1, top, weights);
    for (int64_t j = 0; j < n; ++j) weights[j] *= factor;
    if (slopes) std::copy_n(weights, n, slopes);
    return;
  }
  const auto factor = static_cast<real>(alpha_ - 1);
  for (int64_t j = 0; j < n; ++j) z[j] = factor * (z[j] - top);
  const double power = 1 / (alpha_ - 1);
  with_power(power, [&](auto k) { weigh_shifted<k>(n, z, power, weights, slopes); });
}

void EntmaxWeights::weigh(const RowStrip& x) const {
  for (int64_t r = 0; r < x.rows; ++r)
    if (x.counts[r] > 0) weigh_row(x.counts[r], x.row(0, r), x.row(0, r), nullptr);
}

RowStrip EntmaxWeights::keep(const RowStrip& x, const RowStrip&, const RowStrip& spare) const {
  for (int64_t r = 0; r < x.rows; ++r)
    if (x.counts[r] > 0) weigh_row(x.counts[r], x.row(0, r), spare.row(0, r), x.row(0, r));
  return spare;
}

void EntmaxWeights::gradient(const RowStrip& x, const RowStrip&, const RowStrip& g, double*) const {
  const auto add = [](const Lanes& slopes, const Lanes& grads, Lanes& a, Lanes& b) {
    a += slopes;
    b += slopes * grads;
  };
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    real *const slopes = x.row(0, r), *const grad = g.row(0, r);
    double total = 0, weighted = 0;
    add_up(n, slopes, 0, grad, add, total, weighted);
    const auto mean = static_cast<real>(total > 0 ? weighted / total : 0);
    for (int64_t j = 0; j < n; ++j) grad[j] = slopes[j] * (grad[j] - mean);
  }
}

}  // namespace attn
