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

bool is_exact_reference(const Plugin& variant) {
  const VariantInfo& exact = exact_reference();
  return variant.name == exact.name && variant.params == Params(exact.name, exact.params);
}

// The same for a variant and for exact attention beside it.
std::string surroundings(CellKey key) {
  key.variant = {};
  return what_is_measured(key);
}

}  // namespace

std::vector<Tested> times_alone(const std::vector<RowPair>& pairs, double threshold) {
  const BothTimes times = times_of(pairs);
  std::vector<Tested> all;
  for (size_t i = 0; i < pairs.size(); i++)
    all.push_back(tested_times(pairs[i], "s", times.before[i].mean, times.after[i].mean,
                               change_of({times.after[i]}, {times.before[i]}), threshold));
  return all;
}

std::vector<Tested> times_to_exact(const std::vector<RowPair>& pairs, double threshold,
                                   std::vector<LeftOut>& left_out) {
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
  }
  return all;
}

}  // namespace attn
