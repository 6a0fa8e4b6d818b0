// What a handful of samples say: median, mean, minimum, median absolute deviation, and an interval
// of the median. Percentile bootstrap (Efron 1979): 10 000 resamples, O(10 000·n), a few
// milliseconds.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "core/rng.h"
#include "harness/measure/measure.h"

namespace attn {
namespace {

constexpr int kResamples = 10000;  // the interval's ends are then sure to about 0.2 percentiles
constexpr double kTail = 0.025;    // 95 %

// Reorders `values`. The mean of the two middle ones when their number is even.
double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// One sample gives an interval of no width, two to five give their range: nothing better can be
// said of so few.
void add_interval(const std::vector<double>& samples, uint64_t seed, Summary& summary) {
  Rng stream = rng(seed, "bootstrap");
  std::vector<double> medians(kResamples), draw(samples.size());
  for (double& median : medians) {
    for (double& value : draw) value = samples[stream.below(samples.size())];
    median = median_of(draw);
  }
  std::sort(medians.begin(), medians.end());
  const auto cut = static_cast<size_t>(kTail * kResamples);
  summary.ci_low = medians[cut];
  summary.ci_high = medians[kResamples - 1 - cut];
}

}  // namespace

Summary summarize(const std::vector<double>& samples, uint64_t seed) {
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
  add_interval(samples, seed, summary);
  return summary;
}

}  // namespace attn
