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

// |gradient · direction - difference of the outputs| through these leaves, by one step.
double off_along(const Workload& workload, const std::vector<const Moved*>& leaves,
                 double step_size) {
  std::vector<Tensor> kept;
  double claimed = 0, found = 0;
  for (const Moved* moved : leaves) {
    kept.push_back(moved->leaf.value.clone());
    claimed += moved->share * dot(moved->leaf.gradient, moved->direction);
  }
  for (const double sign : {1.0, -1.0}) {
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Tensor& value = leaves[i]->leaf.value;
      const double step = sign * step_size * leaves[i]->share;
      for (int64_t at = 0; at < value.size(); ++at)
        value[at] = static_cast<real>(static_cast<double>(kept[i][at]) +
                                      step * static_cast<double>(leaves[i]->direction[at]));
    }
    found += sign * dot(output_of(workload), workload.output_gradient()) / (2 * step_size);
  }
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i]->leaf.value.copy_from(kept[i]);
  return std::abs(claimed - found);
}

// By the first step that gives at most `allowed`: a wrong gradient is off by every step.
double least_off(const Workload& workload, const std::vector<const Moved*>& leaves,
                 double allowed) {
  double least = std::numeric_limits<double>::infinity();
  for (const double step : kMovedSteps) {
    least = std::fmin(least, off_along(workload, leaves, step));
    if (least <= allowed) break;
  }
  return least;
}

ComparedDifferences differences_of(const Workload& workload) {
  double unit = 1;
  const std::vector<Moved> leaves = moved_leaves(workload, unit);
  std::vector<const Moved*> all;
  for (const Moved& leaf : leaves) all.push_back(&leaf);
  ComparedDifferences result{.error = least_off(workload, all, kAllowedDifference * unit) / unit,
                             .bound = kAllowedDifference};
  if (result.error <= kAllowedDifference) return result;
  std::string names;  // which of them?
  for (const Moved& leaf : leaves)
    if (!(least_off(workload, {&leaf}, kAllowedDifference * unit) <= kAllowedDifference * unit))
      names += (names.empty() ? "" : ", ") + leaf.leaf.name;
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
  if (differences_of(shorter).fault) return std::nullopt;
  return differences_of(workload);
}

}  // namespace attn
