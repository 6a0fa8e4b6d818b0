// Kendall's tau-b of two lists of numbers and its interval (Fieller, Hartley and Pearson 1957,
// Biometrika 44). O(n²).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace attn {

// 1 where both lists have the same order, -1 where one has the opposite one; pairs that are equal
// on one side count as neither. nullopt where one list is all equal. Both are of one length.
std::optional<double> kendall_tau(const std::vector<double>& x, const std::vector<double>& y);

struct TauInterval {
  double low = 0, high = 0;
};
// The 95 % interval: the inverse hyperbolic tangent of tau has a variance of 0.437 / (count - 4). A
// tau of 1 is taken as if half a pair disagreed. With the normal quantile the intervals of few
// lists are too narrow where tau is large; with Student's of count - 2 degrees they are not.
// count > 4.
TauInterval tau_interval(double tau, int64_t count);

}  // namespace attn
