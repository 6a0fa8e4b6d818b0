// Pairs of times, as they are or over those of exact attention; see time_pairs.h.
#include "harness/compare/time_pairs.h"

#include <cmath>
#include <map>

#include "core/base/check.h"
#include "harness/compare/times.h"
#include "variants/catalog.h"

namespace attn {
namespace {

struct BothTimes {
  std::vector<LogTime> before, after;
};

BothTimes times_of(const std::vector<RowPair>& pairs) {
  std::vector<const Row*> before, after;
  for (const RowPair& pair : pairs) {
    before.push_back(pair.before);
    after.push_back(pair.after);
  }
  return {log_times(before), log_times(after)};
}

std::string visits_text(const RowPair& pair) {
  const size_t before = std::max<size_t>(pair.before->result.visits.size(), 1),
               after = std::max<size_t>(pair.after->result.visits.size(), 1);
  if (before > 1 && after > 1) return fmt::format("{} and {} visits", before, after);
  return "one visit does not tell how far visits differ";
}

// `before` and `after` are logarithms.
Tested tested_times(const RowPair& pair, const char* unit, double before, double after,
                    std::optional<Change> change, double threshold) {
  Tested tested{.shown = {.measure = Measure::speed,
                          .label = pair.label,
                          .key = pair.before->key,
                          .unit = unit,
                          .before = std::exp(before),
                          .after = std::exp(after),
                          .change = std::exp(after - before),
                          .basis = visits_text(pair)},
                .change = change,
                .margin = std::log1p(threshold)};
  tested.is_disturbed = !pair.before->result.noisy.empty() || !pair.after->result.noisy.empty();
  if (tested.is_disturbed) tested.shown.basis += ", disturbed";
  if (change) {
    tested.shown.low = std::exp(change->value - reach(*change));
    tested.shown.high = std::exp(change->value + reach(*change));
  }
  return tested;
}

// Times that hardly differ, for all that the machine did, are the same.
bool needs_bounds(const Tested& tested) {
  return tested.is_disturbed && tested.change &&
         verdict_of(*tested.change, tested.margin, 1) != Judgement::same;
}

// Of the pair of a cell, and of that of exact attention beside it where ratios to it are compared.
void judge_by_bounds(const std::vector<const RowPair*>& pairs, const BothMachines& seen,
                     Tested& tested) {
  std::vector<TimeBounds> added, taken;
  double before = 0, after = 0;  // logarithms of what the fastest visits give
  for (const RowPair* pair : pairs) {
    const bool is_exact = pair != pairs[0];
    const double spread = least_spread({pair->before, pair->after});
    const auto old_time = time_bounds(*pair->before, seen.before, spread);
    const auto new_time = time_bounds(*pair->after, seen.after, spread);
    if (!old_time || !new_time) return;
    (is_exact ? taken : added).push_back(*new_time);
    (is_exact ? added : taken).push_back(*old_time);
    before += is_exact ? -old_time->high : old_time->high;
    after += is_exact ? -new_time->high : new_time->high;
  }
  const BoundedChange bounded = change_within(added, taken);
  Compared& shown = tested.shown;
  shown.before = std::exp(before);
  shown.after = std::exp(after);
  shown.change = std::exp(after - before);
  shown.low = std::exp(bounded.low());
  shown.high = std::exp(bounded.high());
  shown.widened = std::exp(bounded.most - bounded.least);
  shown.basis += fmt::format(", interval widened by {:.3g} x", *shown.widened);
  tested.bounded = bounded;
}

bool is_exact_reference(const Plugin& variant) {
  const VariantInfo& exact = exact_reference();
  return variant.name == exact.name && variant.params == defaults_in_rows(exact);
}

// The same for a variant and for exact attention beside it.
std::string surroundings(CellKey key) {
  key.variant = {};
  return what_is_measured(key);
}

}  // namespace

std::vector<Tested> times_alone(const std::vector<RowPair>& pairs, double threshold,
                                const BothMachines& seen) {
  const BothTimes times = times_of(pairs);
  std::vector<Tested> all;
  for (size_t i = 0; i < pairs.size(); i++) {
    const RowPair& pair = pairs[i];
    all.push_back(tested_times(pair, "s", times.before[i].mean, times.after[i].mean,
                               change_of({times.after[i]}, {times.before[i]}), threshold));
    if (needs_bounds(all.back())) judge_by_bounds({&pair}, seen, all.back());
  }
  return all;
}

std::vector<Tested> times_to_exact(const std::vector<RowPair>& pairs, double threshold,
                                   const BothMachines& seen, std::vector<LeftOut>& left_out) {
  const BothTimes times = times_of(pairs);
  std::map<std::string, size_t> exact;
  for (size_t i = 0; i < pairs.size(); i++)
    if (is_exact_reference(pairs[i].before->key.variant))
      exact[surroundings(pairs[i].before->key)] = i;
  std::vector<Tested> all;
  for (size_t i = 0; i < pairs.size(); i++) {
    if (is_exact_reference(pairs[i].before->key.variant)) continue;
    const auto found = exact.find(surroundings(pairs[i].before->key));
    if (found == exact.end()) {
      left_out.push_back(
          {Measure::speed, pairs[i].label,
           fmt::format("both files need a time of {} beside it", exact_reference().name)});
      continue;
    }
    const size_t e = found->second;
    const std::string unit = "ratio to " + exact_reference().name;
    all.push_back(tested_times(
        pairs[i], unit.c_str(), times.before[i].mean - times.before[e].mean,
        times.after[i].mean - times.after[e].mean,
        change_of({times.after[i], times.before[e]}, {times.before[i], times.after[e]}),
        threshold));
    if (needs_bounds(all.back())) judge_by_bounds({&pairs[i], &pairs[e]}, seen, all.back());
  }
  return all;
}

}  // namespace attn
