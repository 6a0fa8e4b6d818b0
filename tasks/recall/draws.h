// Random draws without repetition, uniform or weighted by a power law, and a check that a task has
// enough different inputs. The draws have the same bits on every platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/rng.h"

namespace attn::recall {

// The weights a·x^(a−1) for x = 1 .. count, with a > 0. All weights are 1 for a = 1; they fall more
// steeply for smaller a. O(count · a).
std::vector<double> power_law(int64_t count, double a);

// `count` different integers of [0, n) in random order, count <= n. O(n).
std::vector<int32_t> distinct(Rng& random, int64_t n, int64_t count);

// `count` different indices in the order of the draws. Each draw selects one of the remaining
// indices with a probability proportional to its weight. At least `count` weights must be positive.
// O(count · weights).
std::vector<size_t> weighted_distinct(Rng& random, std::vector<double> weights, int64_t count);

// The least number of different inputs of a task. With 2^20 of them, 1000 examples each of two
// seeds have about one input in common.
inline constexpr double kFewestInputs = 1 << 20;

// Error when fewer than kFewestInputs sequences of `places` symbols exist: different seeds would
// repeat each other's examples. `task` names the task, `settings` the parameters to change.
void check_inputs(std::string_view task, int64_t symbols, int64_t places,
                  std::string_view settings);

}  // namespace attn::recall
