// Gradients beside differences of the variant's own outputs; see identities.h. Costs two passes.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "harness/check/parts.h"
#include "harness/verify/identities.h"

namespace attn {
namespace {

// Of the inputs, whose entries are about 1: rounding of outputs in float32 is with the first step
// 1e-5 of the difference, and what is left of higher orders about as much. The shorter one is for a
// direction along which many relus have their kink within a step.
constexpr double kMovedSteps[] = {1e-2, 1e-3};
constexpr double kAllowedDifference = 1e-2;  // a wrong gradient is off by about its own length
constexpr double kLeastShare = 0.1;

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// A leaf, and a share of the direction through all leaves for which each weighs alike, but that a
// leaf with hardly any gradient is not moved far.
struct Moved {
  LeafGradient leaf;
  Tensor direction;
  double share = 1;
};

std::vector<Moved> moved_leaves(const Workload& workload, double& unit) {
  const double rounding = 0.01 * length_of(workload.output_gradient());
  std::vector<Moved> all;
  std::vector<double> units;
  for (LeafGradient& leaf : workload.gradients()) {
    units.push_back(length_of(leaf.gradient) + rounding);
    const Tensor direction = Tensor::normal(leaf.value.shape(), rng(79, leaf.name));
    leaf.gradient = leaf.gradient.clone();
    all.push_back({std::move(leaf), direction});
  }
  const double least = kLeastShare * *std::max_element(units.begin(), units.end());
  for (double& one : units) one = std::max(one, least);
  unit = *std::min_element(units.begin(), units.end());
  for (size_t i = 0; i < all.size(); ++i) all[i].share = unit / units[i];
  return all;
}

Tensor output_of(const Workload& workload) {
  const NoGrad no_grad;
  return workload.forward().value();
}

// The slope of the outputs along the shares of these leaves, by one step.
double slope_of(const Workload& workload, const std::vector<const Moved*>& leaves,
                double step_size) {
  std::vector<Tensor> kept;
  for (const Moved* moved : leaves) kept.push_back(moved->leaf.value.clone());
  double slope = 0;
  for (const double sign : {1.0, -1.0}) {
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Tensor& value = leaves[i]->leaf.value;
      const double step = sign * step_size * leaves[i]->share;
      for (int64_t at = 0; at < value.size(); ++at)
        value[at] = static_cast<real>(static_cast<double>(kept[i][at]) +
                                      step * static_cast<double>(leaves[i]->direction[at]));
    }
    slope += sign * dot(output_of(workload), workload.output_gradient()) / (2 * step_size);
  }
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i]->leaf.value.copy_from(kept[i]);
  return slope;
}

struct SlopeGap {
  double off = std::numeric_limits<double>::infinity();  // of the gradient, by the nearest step
  // Whether the steps agree with each other. Where a choice of keys changes within a step they do
  // not, and tell nothing: by a wrong gradient the steps agree, and differ from it.
  bool is_smooth = true;
};

// By the first step that gives at most `allowed`: a wrong gradient is off by every step.
SlopeGap slope_gap(const Workload& workload, const std::vector<const Moved*>& leaves,
                   double allowed) {
  double claimed = 0;
  for (const Moved* moved : leaves)
    claimed += moved->share * dot(moved->leaf.gradient, moved->direction);
  SlopeGap gap;
  std::vector<double> slopes;
  for (const double step : kMovedSteps) {
    slopes.push_back(slope_of(workload, leaves, step));
    gap.off = std::fmin(gap.off, std::abs(claimed - slopes.back()));
    if (gap.off <= allowed) return gap;
  }
  gap.is_smooth = !(std::abs(slopes[0] - slopes[1]) > allowed);
  return gap;
}

// Where the outputs jump along all leaves together, those along which they do not are compared each
// by itself; nullopt: there is none.
std::optional<ComparedDifferences> differences_of(const Workload& workload) {
  double unit = 1;
  const std::vector<Moved> leaves = moved_leaves(workload, unit);
  const double allowed = kAllowedDifference * unit;
  std::vector<const Moved*> all;
  for (const Moved& leaf : leaves) all.push_back(&leaf);
  const SlopeGap together = slope_gap(workload, all, allowed);
  ComparedDifferences result{.error = together.off / unit, .bound = kAllowedDifference};
  if (together.off <= allowed) return result;
  std::string names;  // of wrong gradients
  double error = 0;   // of the others, where they can be told
  bool is_told = false;
  for (const Moved& leaf : leaves) {
    const SlopeGap alone = slope_gap(workload, {&leaf}, allowed);
    if (alone.off <= allowed) {
      error = std::max(error, alone.off / unit);
      is_told = true;
    } else if (alone.is_smooth) {
      names += (names.empty() ? "" : ", ") + leaf.leaf.name;
    }
  }
  if (names.empty() && !together.is_smooth) {
    if (!is_told) return std::nullopt;
    result.error = error;
    return result;
  }
  result.fault = fmt::format(
      "the gradient of {} is off by {:.1e} of its length against differences of the outputs; "
      "allowed {:.1e}",
      names.empty() ? "all inputs together" : names, result.error, kAllowedDifference);
  return result;
}

}  // namespace

std::optional<ComparedDifferences> compare_differences(const Workload& workload) {
  WorkloadSpec trial = workload.spec();
  trial.length = std::min(trial.length, kTrialLength);
  while (trial.length > 1 && why_not(trial)) --trial.length;
  if (why_not(trial)) return std::nullopt;
  Workload shorter(trial);
  shorter.run();
  const auto at_short = differences_of(shorter);
  if (!at_short || at_short->fault) return std::nullopt;
  return differences_of(workload);
}

}  // namespace attn
