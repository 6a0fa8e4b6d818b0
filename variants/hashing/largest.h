// The largest of some scores by a heap of those wanted: O(count + wanted·log(count)·log(wanted))
// for scores in random order. Of equal ones the first.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/real.h"

namespace attn {

// The `wanted` largest of `count` scores, of equal ones the first; their places ascending.
inline void select_largest(const real* scores, int64_t count, int64_t wanted, int32_t* top) {
  const auto better = [scores](int32_t a, int32_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
  };
  for (int64_t j = 0; j < wanted; ++j) top[j] = static_cast<int32_t>(j);
  std::make_heap(top, top + wanted, better);  // the worst in front
  for (int64_t j = wanted; j < count; ++j) {
    if (!(scores[j] > scores[top[0]])) continue;
    std::pop_heap(top, top + wanted, better);
    top[wanted - 1] = static_cast<int32_t>(j);
    std::push_heap(top, top + wanted, better);
  }
  std::sort(top, top + wanted);
}

}  // namespace attn
