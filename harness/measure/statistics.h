// Medians, confidence intervals and quantiles of timings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace attn {

// The value that a standard normal variable is below with probability p, in (0, 1).
double normal_quantile(double p);
// The 97.5 % quantile of Student's t distribution with `degrees` > 0 degrees of freedom.
double student_t_975(size_t degrees);
// The value that Student's t exceeds with probability `tail`, in (0, 1), and the probability of
// exceeding `t`. `degrees` > 0 need not be a whole number.
double student_t_above(double tail, double degrees);
double student_t_tail(double t, double degrees);

// Holm's step-down correction (Holm 1979): for each of `p` the least level of all tests together at
// which its hypothesis is rejected. Rejecting those of at most alpha rejects a true hypothesis in
// at most a share alpha of all sweeps, however the tests depend on each other. O(n log n).
std::vector<double> holm(const std::vector<double>& p);

// McNemar's exact test, two-sided: the probability of a split as uneven as this one, where `lost`
// examples are right before alone and `won` after alone, if each is as likely as the other.
double mcnemar(int64_t lost, int64_t won);

// The logarithm of each visit's median; see summarize(). Error where a time is not above 0.
std::vector<double> log_medians(const std::vector<double>& samples,
                                const std::vector<int64_t>& visits);

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

struct Interval {
  double low = 0, high = 0;
};
// The 95 % confidence interval of the median of `above` over that of `below`, whose samples i were
// taken in turn, so that what slows the machine for a while slows both. As of summarize(): with
// several visits from the variance of their ratios, with one by a bootstrap of pairs. It holds the
// ratio of all samples. nullopt: one visit of fewer than 6 pairs, whose range is no such interval.
std::optional<Interval> ratio_interval(const std::vector<double>& above,
                                       const std::vector<double>& below,
                                       const std::vector<int64_t>& visits = {}, uint64_t seed = 0);

}  // namespace attn
