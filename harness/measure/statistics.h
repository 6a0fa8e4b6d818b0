// Medians, intervals and quantiles of timings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attn {

// The 97.5 % quantile of Student's t with `degrees` > 0 degrees of freedom.
double student_t_975(size_t degrees);

struct Summary {
  double median = 0, mean = 0, min = 0, mad = 0;  // mad: median absolute deviation
  // 95 %. Of several visits: of the geometric mean, over all visits that might be made, of the
  // median time of a visit, from how the visits' own medians scatter. Of one: of the median of that
  // one process, by seeded bootstrap; how another process would differ is not in it.
  double ci_low = 0, ci_high = 0;
  int64_t n = 0;
};
// `visits`: how many samples each visit (a process of its own) gave, in the order of `samples`;
// empty: one visit gave all.
Summary summarize(const std::vector<double>& samples, const std::vector<int64_t>& visits = {},
                  uint64_t seed = 0);

}  // namespace attn
