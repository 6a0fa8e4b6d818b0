// Statistics of a few samples: median, mean, minimum, median absolute deviation and an interval.
// With several visits (processes): Student's t on the logarithms of their medians, O(n). With one
// visit: percentile bootstrap (Efron 1979), 10 000 resamples, O(10 000·n), a few milliseconds.
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/check.h"
#include "core/base/function.h"
#include "core/base/rng.h"
#include "harness/measure/statistics.h"

namespace attn {
namespace {

constexpr int kResamples = 10000;  // the interval's ends are then sure to about 0.2 percentiles
constexpr double kTail = 0.025;    // 95 %
// Of n pairs no resample leaves their range, which holds the median of all pairs in 1 - 2^(1-n) of
// the cases: of 2 in half of them, of 5 in 94 %, of 6 in 97 %.
constexpr size_t kLeastRatioPairs = 6;

// Reorders `values`. The mean of the two middle ones when their number is even.
double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// The middle 95 % of what `draw`, which resamples, returns.
Interval bootstrapped(uint64_t seed, FunctionRef<double(Rng& stream)> draw) {
  Rng stream = rng(seed, "bootstrap");
  std::vector<double> drawn(kResamples);
  for (double& value : drawn) value = draw(stream);
  std::sort(drawn.begin(), drawn.end());
  const auto cut = static_cast<size_t>(kTail * kResamples);
  return {drawn[cut], drawn[kResamples - 1 - cut]};
}

// One sample gives an interval of no width, two to five give their range: nothing better can be
// said of so few.
void add_interval_within(const std::vector<double>& samples, uint64_t seed, Summary& summary) {
  std::vector<double> draw(samples.size());
  const Interval found = bootstrapped(seed, [&](Rng& stream) {
    for (double& value : draw) value = samples[stream.below(samples.size())];
    return median_of(draw);
  });
  summary.ci_low = found.low;
  summary.ci_high = found.high;
}

// The interval of exp(mean of `logs`), one of each visit.
Interval between_visits(const std::vector<double>& logs) {
  const double count = static_cast<double>(logs.size());
  const double centre = std::accumulate(logs.begin(), logs.end(), 0.0) / count;
  double squares = 0;
  for (const double value : logs) squares += (value - centre) * (value - centre);
  const double reach = student_t_975(logs.size() - 1) * std::sqrt(squares / (count - 1) / count);
  return {std::exp(centre - reach), std::exp(centre + reach)};
}

// Samples of one process are alike (one heap, one page layout, one state of the machine), so what
// counts is how far the visits lie apart. Few visits make a bootstrap of visits far too narrow (75
// % of three); t on their medians covers 94 to 96 % of 3 to 9 visits, whatever share of the scatter
// lies between them. The logarithm, because disturbances multiply and only lengthen.
void add_interval_between(const std::vector<double>& samples, const std::vector<int64_t>& visits,
                          Summary& summary) {
  const Interval found = between_visits(log_medians(samples, visits));
  // The median of all samples is not the middle of the visits' own: it never lies outside.
  summary.ci_low = std::min(found.low, summary.median);
  summary.ci_high = std::max(found.high, summary.median);
}

void check_visits(const std::vector<double>& samples, const std::vector<int64_t>& visits) {
  ATTN_CHECK(!samples.empty(), "no samples to summarise");
  for (const int64_t size : visits)
    ATTN_CHECK(size >= 1 && size <= std::ssize(samples), "a visit has {} of {} samples", size,
               samples.size());
  const int64_t total = std::accumulate(visits.begin(), visits.end(), int64_t{0});
  ATTN_CHECK(total == std::ssize(samples), "visits of {} samples in all, but {} are given", total,
             samples.size());
  const double least = *std::min_element(samples.begin(), samples.end());
  ATTN_CHECK(least > 0, "a time is {}, but times of several visits must be above 0", least);
}

}  // namespace

double normal_quantile(double p) { return boost::math::quantile(boost::math::normal(), p); }

double student_t_above(double tail, double degrees) {
  const boost::math::students_t student(degrees);
  return boost::math::quantile(boost::math::complement(student, tail));
}

double student_t_975(size_t degrees) {
  return student_t_above(kTail, static_cast<double>(degrees));
}

double student_t_tail(double t, double degrees) {
  return boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), t));
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<double> corrected(p.size());
  double least = 0;  // that of a greater p is not below that of a smaller
  for (size_t rank = 0; rank < order.size(); rank++) {
    least = std::max(least, p[order[rank]] * static_cast<double>(p.size() - rank));
    corrected[order[rank]] = std::min(least, 1.0);
  }
  return corrected;
}

double mcnemar(int64_t lost, int64_t won) {
  ATTN_CHECK(lost >= 0 && won >= 0, "{} lost and {} won examples", lost, won);
  if (lost == won) return 1;
  const boost::math::binomial fair(static_cast<double>(lost + won), 0.5);
  return std::min(1.0, 2 * boost::math::cdf(fair, static_cast<double>(std::min(lost, won))));
}

std::vector<double> log_medians(const std::vector<double>& samples,
                                const std::vector<int64_t>& visits) {
  check_visits(samples, visits);
  std::vector<double> logs;
  auto from = samples.begin();
  for (const int64_t size : visits) {
    std::vector<double> visit(from, from + size);
    logs.push_back(std::log(median_of(visit)));
    from += size;
  }
  return logs;
}

Summary summarize(const std::vector<double>& samples, const std::vector<int64_t>& visits,
                  uint64_t seed) {
  ATTN_CHECK(!samples.empty(), "no samples to summarise");
  for (const double value : samples) ATTN_CHECK(std::isfinite(value), "a sample is not finite");
  Summary summary;
  summary.n = static_cast<int64_t>(samples.size());
  std::vector<double> values = samples;
  summary.median = median_of(values);
  summary.mean =
      std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  summary.min = *std::min_element(samples.begin(), samples.end());
  for (double& value : values) value = std::abs(value - summary.median);
  summary.mad = median_of(values);
  if (visits.size() <= 1) {
    ATTN_CHECK(visits.empty() || visits[0] == summary.n, "a visit of {} samples, but {} are given",
               visits[0], summary.n);
    add_interval_within(samples, seed, summary);
    return summary;
  }
  add_interval_between(samples, visits, summary);
  return summary;
}

std::optional<Interval> ratio_interval(const std::vector<double>& above,
                                       const std::vector<double>& below,
                                       const std::vector<int64_t>& visits, uint64_t seed) {
  ATTN_CHECK(above.size() == below.size(), "a ratio needs pairs of samples, got {} and {}",
             above.size(), below.size());
  const std::vector<int64_t> of_one = {std::ssize(above)};
  std::vector<double> logs = log_medians(above, visits.empty() ? of_one : visits);
  const std::vector<double> of_below = log_medians(below, visits.empty() ? of_one : visits);
  if (logs.size() == 1 && above.size() < kLeastRatioPairs) return std::nullopt;
  std::vector<double> a = above, b = below;
  const double ratio = median_of(a) / median_of(b);
  Interval found;
  if (logs.size() > 1) {
    for (size_t i = 0; i < logs.size(); ++i) logs[i] -= of_below[i];
    found = between_visits(logs);
  } else {
    found = bootstrapped(seed, [&](Rng& stream) {
      for (size_t i = 0; i < a.size(); ++i) {
        const size_t pair = stream.below(above.size());
        a[i] = above[pair];
        b[i] = below[pair];
      }
      return median_of(a) / median_of(b);
    });
  }
  return Interval{std::min(found.low, ratio), std::max(found.high, ratio)};
}

}  // namespace attn
