// The length at which the ratio of two times is 1: a line through log ratios over the logarithms of
// lengths, and the interval of its root (Fieller 1954, J. Royal Statistical Society B 16, 175-185).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "harness/compare/change.h"

namespace attn {

// What a variant takes beside its rival at one length.
struct RatioPoint {
  int64_t length = 0;
  Change ratio;  // logarithm of the variant's amount over the rival's; an error of 0: exact
};

// Lengths. Without a bound the line is too flat, or its points too uncertain, to cross 1 for sure.
struct LineCrossing {
  double at = 0, low = 0, high = 0;
  bool is_bounded = false;
};

// Of three points or more at three lengths; nullopt of fewer, or of a line without a slope. Each
// point counts alike. O(points).
std::optional<LineCrossing> line_crossing(const std::vector<RatioPoint>& points);

}  // namespace attn
