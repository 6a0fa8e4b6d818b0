// log Σ exp of numbers side by side. Near the speed of their exponentials.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kernels/exp.h"
#include "core/kernels/rows.h"

namespace attn {

inline constexpr int64_t kStripe = 64;  // numbers taken together

// Of n numbers; -infinity where there are none.
inline real log_sum(const real* x, int64_t n) {
  const real top = row_max(x, n);
  real sum = 0;
  for (int64_t first = 0; first < n; first += kStripe) {
    alignas(64) real terms[kStripe];
    const int64_t count = std::min(kStripe, n - first);
    ATTN_INDEPENDENT
    for (int64_t j = 0; j < count; ++j) terms[j] = fast_exp(x[first + j] - top);
    sum += row_sum(terms, count);
  }
  return top + std::log(sum);
}

}  // namespace attn
