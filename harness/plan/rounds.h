// In how many visits, each a process of its own, the samples of a speed cell are taken. A header of
// its own, because it can change a figure: it is hashed into the cells' ids.
#pragma once

#include <algorithm>
#include <cstdint>

namespace attn {

// Visits stand between those of other variants. Three are the fewest whose scatter says something:
// the interval of two would be over three times as wide.
inline constexpr int kRounds = 3;
inline int64_t rounds_of(int64_t repetitions) { return std::min<int64_t>(repetitions, kRounds); }

}  // namespace attn
