// What the tasks of recall draw: tokens without repetition, and slots by a power law. The same bits
// on every platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/rng.h"

namespace attn::recall {

// a·x^(a−1) for x = 1 .. count, a > 0: 1 everywhere for a = 1, steeper the smaller a. O(count · a).
std::vector<double> power_law(int64_t count, double a);

// `count` different integers of [0, n) in random order, count <= n. O(n).
std::vector<int32_t> distinct(Rng& random, int64_t n, int64_t count);

// `count` different indices in the order drawn, each with probability proportional to its weight
// among those left; at least `count` weights above 0. O(count · weights).
std::vector<size_t> weighted_distinct(Rng& random, std::vector<double> weights, int64_t count);

// Error when a task whose inputs are `places` free choices among `symbols` has fewer than 2^20 of
// them: splits and seeds would repeat each other's examples. `settings` names what to change.
void check_inputs(std::string_view task, int64_t symbols, int64_t places,
                  std::string_view settings);

}  // namespace attn::recall
