// Visits of both measurements around their common mean; see noise.h.
#include "harness/compare/noise.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "harness/compare/machines.h"
#include "harness/compare/time_pairs.h"
#include "harness/compare/times.h"
#include "harness/measure/statistics.h"
#include "harness/plan/rounds.h"

namespace attn {
namespace {

constexpr double kClaimed = 0.95, kPower = 0.8;
constexpr int kHalvings = 20;    // of an interval around the detectable difference: six digits
constexpr double kNormal = 1e6;  // degrees of freedom of a normal distribution

struct Twice {  // one cell
  const Row* one = nullptr;
  double variance = 0;    // of the logarithm of a visit's time
  double degrees = 0;     // of freedom of a comparison of three visits with three
  double difference = 0;  // of the means
  bool is_held = false, is_raised = false, is_disturbed = false;
};

// Of all visits of both rows around their common mean, so that what differs between the two
// measurements counts as much as what differs within one.
Variance total_variance(const RowPair& pair) {
  std::vector<double> logs;
  for (const Row* row : {pair.before, pair.after})
    for (const double log : log_medians(row->result.times, row->result.visits)) logs.push_back(log);
  const auto count = static_cast<double>(logs.size());
  double mean = 0;
  for (const double log : logs) mean += log / count;
  Variance variance{.value = 0, .degrees = count - 1};
  for (const double log : logs) variance.value += std::pow(log - mean, 2) / variance.degrees;
  return variance;
}

// Degrees of freedom that `compare` adds to those of a cell's own visits, from the other cells.
double borrowed_degrees(const std::vector<LogTime>& times, const std::vector<const Row*>& rows) {
  double sum = 0;
  for (size_t i = 0; i < rows.size(); i++)
    sum += times[i].of_mean.degrees - static_cast<double>(rows[i]->result.visits.size() - 1);
  return sum / static_cast<double>(rows.size());
}

// Satterthwaite's degrees of freedom of the difference of two means of as many visits.
double degrees_of_difference(double one, double other, double degrees_of_each) {
  const double squares = one * one + other * other;
  return degrees_of_each * (squares > 0 ? std::pow(one + other, 2) / squares : 2);
}

// A pair as a test of the difference of two means of three visits sees it.
struct Detector {
  double error = 0, degrees = 0, quantile = 0;
};

// The mean over the pairs of the probability that a difference is found.
double power_at(double logarithm, const std::vector<Detector>& detectors) {
  double sum = 0;
  for (const auto& [error, degrees, quantile] : detectors)
    sum += error > 0 ? student_t_tail(quantile - logarithm / error, degrees) : 1;
  return sum / static_cast<double>(detectors.size());
}

double detectable_of(const std::vector<const Twice*>& pairs) {
  std::vector<Detector> detectors;
  for (const Twice* pair : pairs)
    detectors.push_back({.error = std::sqrt(2 * pair->variance / static_cast<double>(kRounds)),
                         .degrees = pair->degrees,
                         .quantile = student_t_above((1 - kClaimed) / 2, pair->degrees)});
  double low = 0, high = 1e-3;
  if (power_at(0, detectors) >= kPower) return 0;
  while (power_at(high, detectors) < kPower) high *= 2;
  for (int i = 0; i < kHalvings; i++) {
    const double middle = (low + high) / 2;
    (power_at(middle, detectors) < kPower ? low : high) = middle;
  }
  return std::expm1(high);
}

double middle_scatter(const std::vector<const Twice*>& pairs) {
  std::vector<double> variances;
  for (const Twice* pair : pairs) variances.push_back(pair->variance);
  const auto middle = variances.begin() + std::ssize(variances) / 2;
  std::nth_element(variances.begin(), middle, variances.end());
  return std::expm1(std::sqrt(*middle));
}

NoiseOf figures_of(const std::vector<const Twice*>& pairs) {
  NoiseOf noise{.pairs = std::ssize(pairs),
                .scatter = middle_scatter(pairs),
                .detectable = detectable_of(pairs)};
  for (const Twice* pair : pairs) {
    noise.largest = std::max(noise.largest, std::expm1(std::abs(pair->difference)));
    noise.held += pair->is_held;
    noise.raised += pair->is_raised;
  }
  const ShareInterval share = wilson(noise.held, noise.pairs);
  noise.held_low = share.low;
  noise.held_high = share.high;
  return noise;
}

void require_one_program(const RowsFile& one, const RowsFile& other) {
  ATTN_CHECK(one.run.run != other.run.run,
             "'{}' and '{}' are of one run; noise compares two measurements of the same cells",
             one.path, other.path);
  const std::string difference = origin_difference(one.run, other.run);
  ATTN_CHECK(difference.empty(),
             "'{}' and '{}' are of two machines or builds ({}); noise compares two measurements of "
             "one",
             one.path, other.path, difference);
}

bool has_visits(const RowPair& pair) {
  return pair.before->result.visits.size() > 1 && pair.after->result.visits.size() > 1;
}

// Each pair's figures; every pair has visits.
std::vector<Twice> measured_twice(const std::vector<RowPair>& pairs) {
  std::vector<Twice> all;
  std::vector<Variance> own;
  std::vector<double> p;
  std::vector<const Row*> ones, others;
  for (const Tested& tested : times_alone(pairs, 0)) {
    const RowPair& pair = pairs[all.size()];
    const Change& change = tested.change.value();
    all.push_back({.one = pair.before,
                   .difference = change.value,
                   .is_held = std::abs(change.value) <= reach(change),
                   .is_disturbed = tested.is_disturbed});
    p.push_back(probability_within(change, 0));
    own.push_back(total_variance(pair));
    ones.push_back(pair.before);
    others.push_back(pair.after);
  }
  const std::vector<double> corrected = holm(p);
  const std::vector<Variance> steady = steadied(own);
  const std::vector<LogTime> first = log_times(ones), second = log_times(others);
  const double degrees = static_cast<double>(kRounds) - 1 +
                         (borrowed_degrees(first, ones) + borrowed_degrees(second, others)) / 2;
  for (size_t i = 0; i < all.size(); i++) {
    all[i].variance = steady[i].value;
    all[i].is_raised = corrected[i] <= 1 - kClaimed;
    all[i].degrees =
        degrees_of_difference(first[i].of_mean.value, second[i].of_mean.value, degrees);
  }
  return all;
}

}  // namespace

bool NoiseOf::holds_as_claimed() const { return held_low <= kClaimed && kClaimed <= held_high; }

ShareInterval wilson(int64_t count, int64_t total) {
  const double n = static_cast<double>(total), share = static_cast<double>(count) / n;
  const double z = student_t_above((1 - kClaimed) / 2, kNormal), z2 = z * z;
  const double middle = (share + z2 / (2 * n)) / (1 + z2 / n);
  const double half = z / (1 + z2 / n) * std::sqrt(share * (1 - share) / n + z2 / (4 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

NoiseReport noise_of(const RowsFile& one, const RowsFile& other) {
  require_one_program(one, other);
  Pairs found = pairs_of(one, other, {Measure::speed});
  NoiseReport report{.single = found.before_only + found.after_only,
                     .left_out = std::move(found.left_out),
                     .measured_at = other.run.started_at};
  if (const Json& commit = other.run.environment.value("commit", Json()); commit.is_string())
    report.commit = commit.get<std::string>();
  std::vector<RowPair> pairs;
  for (const RowPair& pair : found.usable)
    if (has_visits(pair))
      pairs.push_back(pair);
    else
      report.left_out.push_back({Measure::speed, pair.label, "one visit does not scatter"});
  if (pairs.empty()) return report;
  const std::vector<Twice> all = measured_twice(pairs);
  std::map<std::tuple<Mode, int64_t, int64_t>, std::vector<const Twice*>> groups;
  std::vector<const Twice*> together;
  for (const Twice& twice : all) {
    const Axes& axes = twice.one->key.axes;
    groups[{axes.mode.value_or(Mode::forward), axes.threads.value_or(1), axes.length.value_or(0)}]
        .push_back(&twice);
    together.push_back(&twice);
    report.disturbed += twice.is_disturbed;
  }
  for (const auto& [place, members] : groups) {
    NoiseOf noise = figures_of(members);
    std::tie(noise.mode, noise.threads, noise.length) = place;
    report.groups.push_back(noise);
  }
  report.all = figures_of(together);
  return report;
}

NoiseFloor floors_of(const NoiseReport& report) {
  NoiseFloor floors;
  for (const NoiseOf& group : report.groups)
    if (group.pairs >= kLeastPairs)
      floors.push_back({.mode = group.mode.value(),
                        .threads = group.threads,
                        .length = group.length,
                        .share = group.detectable,
                        .cells = group.pairs,
                        .measured_at = report.measured_at,
                        .commit = report.commit});
  return floors;
}

}  // namespace attn
