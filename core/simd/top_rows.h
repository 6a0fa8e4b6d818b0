// Choice of the largest scores of a row, which comes in pieces. Scores are filtered by a bound, the
// smallest that can still be among them, and what passes is pruned now and then. About 1/8 of an
// operation a score, and 100 to 300 ns a row. Of equal scores the earlier is larger; NaN is larger
// than all, so that it is not lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/base/memory.h"
#include "core/base/real.h"

namespace attn {

// The largest scores of one row so far, and others that may be among them, ascending by place.
struct TopList {
  static constexpr int64_t kChunk = 128;                    // scores that are filtered at once
  static constexpr int64_t kMostPlaces = int64_t{1} << 24;  // a place is exact as a float

  int64_t most = 1;                                             // scores to keep
  real *scores = nullptr, *places = nullptr, *spare = nullptr;  // [room(most)]
  int64_t size = 0;
  // Scores up to this one are not taken; NaN: all are.
  real bound = std::numeric_limits<real>::quiet_NaN();

  static int64_t pruned_at(int64_t most) { return std::max<int64_t>(3 * most, 64); }
  static int64_t room(int64_t most) { return padded_reals(pruned_at(most) + kChunk + 16); }
  static int64_t reals(int64_t most) { return 3 * room(most); }
  static TopList in(real* work, int64_t most) {
    const int64_t each = room(most);
    return {most, work, work + each, work + 2 * each};
  }
};

// Adds n scores, the first of which has that place. Places ascend from call to call.
void add_to_top(int64_t n, const real* scores, int64_t first, TopList& list);
// Leaves the `most` largest, or all if they are fewer.
void finish_top(TopList& list);

// The places of a list's scores, ascending; returns how many.
inline int64_t take_top(TopList& list, int32_t* places) {
  finish_top(list);
  for (int64_t e = 0; e < list.size; ++e) places[e] = static_cast<int32_t>(list.places[e]);
  return list.size;
}

// The places of the `most` largest of n scores, ascending; returns how many: min(most, n). work:
// TopList::reals(most) numbers.
inline int64_t top_places(int64_t n, const real* scores, int64_t most, int32_t* places,
                          real* work) {
  TopList list = TopList::in(work, most);
  add_to_top(n, scores, 0, list);
  return take_top(list, places);
}

// The same for few: each costs a pass over the scores, which are overwritten.
int64_t top_few(int64_t n, real* scores, int64_t most, int32_t* places);

}  // namespace attn
