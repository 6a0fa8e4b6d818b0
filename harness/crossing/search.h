// The search for the lengths at which a variant and its rival change places: which lengths to
// measure next, and what is known when no more are needed. Pure: the same points give the same
// answer, so a search that was cut short goes on from its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "harness/crossing/fit.h"

namespace attn {

// The interval of a crossing is narrow when neither end is farther from the crossing than this
// share of it.
inline constexpr double kNarrow = 0.05;
// Lengths of one variant and rival, those that could not be measured included.
inline constexpr size_t kMostLengths = 20;

// What is known of one variant and one rival where all axes but length are equal.
struct Curve {
  int64_t low = 0, high = 0;       // lengths between which crossings are looked for, both included
  std::vector<RatioPoint> points;  // each length once
  std::set<int64_t> unusable;      // lengths that cannot be measured, or failed
};

struct Crossing {
  bool is_less_after = true;  // the variant takes less beyond the crossing, and more before it
  bool is_found = false;      // false: the sign changes somewhere between low and high, no more
  bool is_narrow = false;     // both ends are within kNarrow
  double at = 0;              // 0 where it is not found
  // The 95 % interval; of exact points the lengths between which the crossing lies; where it is
  // not found, the last length before it that is decided and the first one after it.
  double low = 0, high = 0;
};

struct SearchState {
  std::vector<int64_t> next;  // lengths to measure; empty: the search has ended
  std::vector<Crossing> crossings;
  // Signs of the ratio at the usable lengths, in ascending order: -1 the variant takes less, 1
  // more, 0 undecided (or, of exact points, equal).
  std::vector<std::pair<int64_t, int>> signs;
};

// The lengths of the first step: the ends, and between them the same ratio of about four.
std::vector<int64_t> first_lengths(int64_t low, int64_t high);

SearchState search_step(const Curve& curve);

// `length` as a whole number that many tile sizes divide: a multiple of the largest power of two,
// at most 16, that is no more than kNarrow of the length.
int64_t even_length(double length);

}  // namespace attn
