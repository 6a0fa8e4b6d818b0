// Draws without repetition: uniform by a partial Fisher-Yates shuffle, and weighted; see draws.h
// for the costs.
#include "tasks/recall/draws.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/check.h"

namespace attn::recall {

namespace {

// x^y for y >= 0 by products and square roots only: the binary digits of the fraction of y select
// x^(1/2), x^(1/4), and so on.
double power(double x, double y) {
  double result = 1;
  for (; y >= 1; y -= 1) result *= x;
  for (int digit = 0; digit < 53; digit++) {
    x = std::sqrt(x);
    y *= 2;
    if (y >= 1) {
      result *= x;
      y -= 1;
    }
  }
  return result;
}

}  // namespace

std::vector<double> power_law(int64_t count, double a) {
  std::vector<double> weights;
  for (int64_t i = 1; i <= count; i++) {
    const auto x = static_cast<double>(i);
    weights.push_back(a * power(x, a) / x);
  }
  return weights;
}

std::vector<int32_t> distinct(Rng& random, int64_t n, int64_t count) {
  std::vector<int32_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  for (int64_t i = 0; i < count; i++)
    std::swap(all[static_cast<size_t>(i)], all[static_cast<size_t>(random.between(i, n - 1))]);
  all.resize(static_cast<size_t>(count));
  return all;
}

std::vector<size_t> weighted_distinct(Rng& random, std::vector<double> weights, int64_t count) {
  std::vector<size_t> result;
  while (static_cast<int64_t>(result.size()) < count) {
    double left = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    size_t chosen = weights.size();
    for (size_t i = 0; i < weights.size() && !(left < 0); i++) {
      if (weights[i] == 0) continue;
      chosen = i;  // the last index stays chosen if rounding leaves a remainder
      left -= weights[i];
    }
    weights[chosen] = 0;
    result.push_back(chosen);
  }
  return result;
}

void check_inputs(std::string_view task, int64_t symbols, int64_t places,
                  std::string_view settings) {
  double inputs = 1;
  for (int64_t i = 0; i < places && inputs < kFewestInputs && symbols > 1; i++)
    inputs *= static_cast<double>(symbols);
  ATTN_CHECK(inputs >= kFewestInputs,
             "{}: {} places of {} symbols make only {:.0f} different inputs; {} must be larger",
             task, places, symbols, inputs, settings);
}

}  // namespace attn::recall
