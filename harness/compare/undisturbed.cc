// Bounds by visit, by row and of a change; see undisturbed.h. O(samples).
#include "harness/compare/undisturbed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/check.h"

namespace attn {
namespace {

// Undisturbed visits of one cell, each with its fastest sample, scatter by no more than this
// standard deviation of logarithms: of the reference rows whose machine was not disturbed, 9 in 10
// by less than 0.09. What scatters by more is a disturbance that the bounds hold already.
constexpr double kMostScatter = 0.1;
constexpr double kLevel = 0.05;
// What the fastest visits and their scatter are taken from is the calmest half of the visits, by
// the witness, and at least three: with all of them, more visits would tell less.
constexpr size_t kLeastVisits = 3;

bool has(const Row& row, Noise reason) {
  const std::vector<Noise>& noisy = row.result.noisy;
  return std::find(noisy.begin(), noisy.end(), reason) != noisy.end();
}

// By the roofline, as the sweep decided which rate of the witness counts.
bool is_bound_by_memory(const SpeedMetrics& speed) {
  if (!speed.roofline_s || !speed.peak_fraction) return false;
  const double of_arithmetic = *speed.peak_fraction * speed.time.median;
  return *speed.roofline_s > of_arithmetic * (1 + 1e-9);
}

// The logarithm of how much slower the machine may have been than at its best, by the witness of
// visit `visit` of `visits`. A visit that was put together from several has a witness of each: the
// slowest counts.
double slower_by_witness(const Row& row, const Witness& best, size_t visit, size_t visits) {
  const Witnessed& seen = row.result.witness;
  const size_t count = seen.flops_per_s.size();
  const bool is_even = count % visits == 0;
  const size_t from = is_even ? visit * (count / visits) : 0;
  const size_t to = is_even ? from + count / visits : count;
  const bool counts_copies = is_bound_by_memory(row.speed());
  double share = 1;
  for (size_t i = from; i < to; i++) {
    share = std::min(share, seen.flops_per_s[i] / best.flops_per_s);
    if (counts_copies) share = std::min(share, seen.copy_bytes_per_s[i] / best.copy_bytes_per_s);
  }
  return -std::log(share);
}

// The same by the system's counts, for the reasons that the row was marked for; nullopt: they do
// not bound it. All that was taken from the machine may have been taken from the cell.
std::optional<double> slower_by_counts(const Row& row, int64_t cores) {
  double slower = 0;
  const std::optional<Disturbance>& counts = row.result.disturbance;
  if (has(row, Noise::steal)) {
    if (!counts || !counts->stolen_s || *counts->stolen_s >= counts->seconds) return std::nullopt;
    slower -= std::log(1 - *counts->stolen_s / counts->seconds);
  }
  if (has(row, Noise::switches)) {
    double factor = std::numeric_limits<double>::infinity();
    if (counts && counts->others_s && *counts->others_s < counts->seconds)
      factor = 1 / (1 - *counts->others_s / counts->seconds);
    // Processes that want to run are spread over the cores, and those of a core get equal shares.
    if (counts && counts->load)
      factor = std::min(factor,
                        1 + std::max(1.0, std::ceil(*counts->load / static_cast<double>(cores))));
    if (!std::isfinite(factor)) return std::nullopt;
    slower += std::log(factor);
  }
  return slower;
}

struct Extremes {  // of the logarithms of a visit's samples
  double fastest = 0, slowest = 0;
};

std::vector<Extremes> extremes_of(const CellResult& result) {
  std::vector<Extremes> all;
  auto from = result.times.begin();
  const auto add = [&](int64_t size) {
    ATTN_CHECK(size >= 1 && size <= result.times.end() - from, "a visit has {} of {} samples", size,
               result.times.end() - from);
    const auto [least, most] = std::minmax_element(from, from + size);
    all.push_back({std::log(*least), std::log(*most)});
    from += size;
  };
  if (result.visits.empty()) add(std::ssize(result.times));
  for (const int64_t size : result.visits) add(size);
  return all;
}

Variance variance_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  Variance variance{.value = 0, .degrees = count - 1};
  if (values.size() < 2) return variance;
  double mean = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) variance.value += std::pow(value - mean, 2) / variance.degrees;
  return variance;
}

// One-sided: the probability that scatter alone makes a gap as wide. The visits' own scatter holds
// what the disturbance adds to it, the usual one does not: either is too wide, the narrower counts.
double chance_of(const BoundedChange& change, double gap, int64_t ways) {
  if (!(gap > 0)) return 1;
  const double usual = kMostScatter * std::sqrt(static_cast<double>(change.rows));
  double chance = probability_within(
      Change{.value = gap, .error = usual, .degrees = std::numeric_limits<double>::infinity()}, 0);
  if (change.degrees > 0)
    chance = std::min(chance, probability_within(Change{.value = gap,
                                                        .error = std::sqrt(change.variance),
                                                        .degrees = change.degrees},
                                                 0));
  return std::min(1.0, static_cast<double>(ways) * chance / 2);
}

double scatter_of(const BoundedChange& change, int64_t ways) {
  const double level = 1 - kLevel / static_cast<double>(ways);
  double scatter = reach({.value = 0,
                          .error = kMostScatter * std::sqrt(static_cast<double>(change.rows)),
                          .degrees = std::numeric_limits<double>::infinity()},
                         level);
  if (change.degrees > 0)
    scatter = std::min(
        scatter,
        reach({.value = 0, .error = std::sqrt(change.variance), .degrees = change.degrees}, level));
  return scatter;
}

}  // namespace

void MachineSeen::add(const Row& row) {
  const Witnessed& seen = row.result.witness;
  if (row.key.measure != Measure::speed || seen.empty()) return;
  Witness& best = best_[row.key.axes.threads.value_or(1)];
  for (size_t i = 0; i < seen.flops_per_s.size(); i++) {
    best.flops_per_s = std::max(best.flops_per_s, seen.flops_per_s[i]);
    best.copy_bytes_per_s = std::max(best.copy_bytes_per_s, seen.copy_bytes_per_s[i]);
  }
}

const Witness* MachineSeen::best(int64_t threads) const {
  const auto found = best_.find(threads);
  return found == best_.end() ? nullptr : &found->second;
}

double least_spread(const std::vector<const Row*>& rows) {
  double least = std::numeric_limits<double>::infinity();
  for (const Row* row : rows)
    for (const Extremes& visit : extremes_of(row->result))
      least = std::min(least, visit.slowest - visit.fastest);
  return least;
}

std::optional<TimeBounds> time_bounds(const Row& row, const MachineSeen& seen, double spread) {
  const std::vector<Extremes> visits = extremes_of(row.result);
  const Witness* const best = seen.best(row.key.axes.threads.value_or(1));
  const bool has_witness = best && !row.result.witness.empty();
  if (has(row, Noise::witness) && !has_witness) return std::nullopt;
  const std::optional<double> counted = slower_by_counts(row, seen.cores());
  if (!counted) return std::nullopt;
  // A visit that was disturbed for a part of its time has samples that were, and samples that were
  // not: the undisturbed time is not above its fastest, nor below its slowest less the disturbance.
  std::vector<double> lows;
  std::vector<std::pair<double, size_t>> calmest;
  for (size_t i = 0; i < visits.size(); i++) {
    double slower = *counted;
    if (has_witness) slower += slower_by_witness(row, *best, i, visits.size());
    calmest.emplace_back(slower, i);
    lows.push_back(std::min(visits[i].fastest, visits[i].slowest - spread - slower));
  }
  std::sort(calmest.begin(), calmest.end());
  calmest.resize(std::min(visits.size(), std::max(kLeastVisits, (visits.size() + 1) / 2)));
  std::vector<double> calm_lows, calm_highs;
  for (const auto& [slower, i] : calmest) {
    calm_lows.push_back(lows[i]);
    calm_highs.push_back(visits[i].fastest);
  }
  const Variance of_lows = variance_of(calm_lows), of_highs = variance_of(calm_highs);
  TimeBounds bounds{.high = *std::min_element(calm_highs.begin(), calm_highs.end()),
                    .of_visit = of_lows.value < of_highs.value ? of_lows : of_highs,
                    .visits = std::ssize(calm_highs)};
  // A disturbance that came and went between the witnesses makes a low too high: the middle one
  // stands as long as that befell less than half of the visits.
  const auto middle = lows.begin() + (std::ssize(lows) - 1) / 2;
  std::nth_element(lows.begin(), middle, lows.end());
  bounds.low = std::min(*middle, bounds.high);
  return bounds;
}

double BoundedChange::low() const { return least - scatter_of(*this, least_ways); }
double BoundedChange::high() const { return most + scatter_of(*this, most_ways); }

double BoundedChange::probability_within(double margin) const {
  const double worse = chance_of(*this, least - margin, least_ways);
  const double better = chance_of(*this, -most - margin, most_ways);
  return std::min(1.0, 2 * std::min(worse, better));
}

// Degrees of freedom by Satterthwaite (1946).
BoundedChange change_within(const std::vector<TimeBounds>& added,
                            const std::vector<TimeBounds>& taken) {
  BoundedChange change;
  double weighed = 0;
  bool scatters = true;
  const auto add = [&](const TimeBounds& time) {
    change.rows++;
    change.variance += time.of_visit.value;
    if (time.of_visit.degrees > 0)
      weighed += time.of_visit.value * time.of_visit.value / time.of_visit.degrees;
    else
      scatters = false;
  };
  for (const TimeBounds& time : added) {
    add(time);
    change.least += time.low;
    change.most += time.high;
    change.most_ways *= time.visits;
  }
  for (const TimeBounds& time : taken) {
    add(time);
    change.least -= time.high;
    change.most -= time.low;
    change.least_ways *= time.visits;
  }
  if (scatters)
    change.degrees = weighed > 0 ? change.variance * change.variance / weighed
                                 : std::numeric_limits<double>::infinity();
  return change;
}

Judgement verdict_of(const BoundedChange& change, double margin, double corrected) {
  if (corrected <= kLevel) return change.least > margin ? Judgement::worse : Judgement::better;
  if (-margin <= change.low() && change.high() <= margin) return Judgement::same;
  return Judgement::undecided;
}

}  // namespace attn
