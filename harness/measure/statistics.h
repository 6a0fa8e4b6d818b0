// Medians, confidence intervals and quantiles of timings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attn {

// The 97.5 % quantile of Student's t distribution with `degrees` > 0 degrees of freedom.
double student_t_975(size_t degrees);

struct Summary {
  double median = 0, mean = 0, min = 0, mad = 0;  // mad: median absolute deviation
  // 95 % confidence interval. With several visits: of the geometric mean of the median time of a
  // visit, from the variance between visits. With one visit: of the median of that process, by
  // seeded bootstrap; it does not include the variance between processes.
  double ci_low = 0, ci_high = 0;
  int64_t n = 0;
};
// A visit is one process that took some of the samples. `visits` is the number of samples of each
// visit, in the order of `samples`; empty: one visit took all samples.
Summary summarize(const std::vector<double>& samples, const std::vector<int64_t>& visits = {},
                  uint64_t seed = 0);

}  // namespace attn
