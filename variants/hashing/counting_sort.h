// A stable counting sort. Internal.
#pragma once

#include <algorithm>
#include <cstdint>

namespace attn {

// Positions of [0, len) by their group, ascending within it: those of group g are
// order[begin[g]] to order[begin[g + 1] - 1]. `begin` holds groups + 1 numbers.
inline void counting_sort(int64_t len, const int32_t* group_of, int64_t groups, int32_t* begin,
                          int32_t* order) {
  std::fill_n(begin, groups + 1, 0);
  for (int64_t i = 0; i < len; ++i) ++begin[group_of[i] + 1];
  for (int64_t g = 0; g < groups; ++g) begin[g + 1] += begin[g];
  for (int64_t i = 0; i < len; ++i) order[begin[group_of[i]]++] = static_cast<int32_t>(i);
  for (int64_t g = groups; g > 0; --g) begin[g] = begin[g - 1];  // each had moved to its end
  begin[0] = 0;
}

}  // namespace attn
