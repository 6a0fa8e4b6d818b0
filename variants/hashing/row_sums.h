// A sum of rows at scattered places. Internal.
#pragma once

#include <cstdint>

#include "core/simd/rows.h"

namespace attn {

// to += factor·from, rows of `dim` numbers that do not overlap. On plain pointers: a loop through
// tensors does not vectorise.
inline void add_row(real* to, real factor, const real* from, int64_t dim) {
  ATTN_INDEPENDENT
  for (int64_t c = 0; c < dim; ++c) to[c] += factor * from[c];
}

}  // namespace attn
