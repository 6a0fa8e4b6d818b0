// The largest of some scores, by a bound that most scores do not pass (core/simd/top_rows.h).
#pragma once

#include <cstdint>

#include "core/simd/top_rows.h"

namespace attn {

// The `wanted` largest of `count` scores, of equal ones the first; their places ascending. wanted
// <= count; work: TopList::reals(wanted).
inline void select_largest(const real* scores, int64_t count, int64_t wanted, int32_t* top,
                           real* work) {
  TopList list = TopList::in(work, wanted);
  add_to_top(count, scores, 0, list);
  finish_top(list);
  for (int64_t s = 0; s < list.size; ++s) top[s] = static_cast<int32_t>(list.places[s]);
}

}  // namespace attn
