// Pairs to verdicts: tests for times and scores, with Holm's correction over all of them, and exact
// figures by their ratio; see compare.h.
#include "harness/compare/compare.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "harness/compare/exact_figures.h"
#include "harness/compare/machines.h"
#include "harness/compare/score_pairs.h"
#include "harness/compare/time_pairs.h"
#include "harness/measure/statistics.h"
#include "harness/plan/rounds.h"
#include "harness/tables/floors.h"

namespace attn {
namespace {

void require_comparable(const RowsFile& before, const RowsFile& after,
                        const CompareRequest& request) {
  if (request.across_machines) return;
  const std::string machine = machine_difference(before.run, after.run);
  ATTN_CHECK(machine.empty(),
             "'{}' and '{}' are from two machines ({}), whose times do not compare; "
             "--across-machines compares ratios to exact attention, --measure memory,accuracy "
             "leaves times out",
             before.path, after.path, machine);
  if (request.across_builds) return;
  const std::string build = build_difference(before.run, after.run);
  ATTN_CHECK(build.empty(),
             "'{}' and '{}' are of two builds ({}); --across-builds compares their times all the "
             "same",
             before.path, after.path, build);
}

// Of two machines or builds each file has its own best; else the better of both counts, since one
// file may have been disturbed from its beginning to its end.
BothMachines machines_of(const RowsFile& before, const RowsFile& after,
                         const CompareRequest& request) {
  const auto empty_of = [](const RowsFile& file) {
    const auto threads = file.run.environment.find("threads");
    const bool is_known = threads != file.run.environment.end() && threads->is_number_integer();
    return MachineSeen(is_known ? std::max<int64_t>(1, threads->get<int64_t>()) : 1);
  };
  const bool is_one = !request.across_machines && !request.across_builds;
  BothMachines seen{empty_of(before), empty_of(after)};
  for (const Row& row : before.rows) {
    seen.before.add(row);
    if (is_one) seen.after.add(row);
  }
  for (const Row& row : after.rows) {
    seen.after.add(row);
    if (is_one) seen.before.add(row);
  }
  return seen;
}

// Of no change beyond the threshold; nullopt where there is no test: a single visit does not tell,
// or nothing bounds a disturbance.
std::optional<double> probability_of(const Tested& pair) {
  if (pair.bounded) return pair.bounded->probability_within(pair.margin);
  if (!pair.change || pair.is_disturbed) return std::nullopt;
  return std::max(probability_within(*pair.change, pair.margin), pair.least_p);
}

Judgement verdict_of_pair(const Tested& pair) {
  if (pair.bounded) return verdict_of(*pair.bounded, pair.margin, *pair.shown.corrected);
  if (!pair.change) return Judgement::undecided;
  return verdict_of(*pair.change, pair.margin, pair.shown.corrected.value_or(1));
}

// Each tested pair's corrected probability and verdict.
void judge(std::vector<Tested>& tested, Comparison& comparison) {
  std::vector<double> p;
  for (Tested& pair : tested) {
    pair.shown.p = probability_of(pair);
    if (pair.shown.p) p.push_back(*pair.shown.p);
  }
  const std::vector<double> corrected = holm(p);
  auto next = corrected.begin();
  for (Tested& pair : tested) {
    if (pair.shown.p) pair.shown.corrected = *next++;
    pair.shown.verdict = verdict_of_pair(pair);
    comparison.pairs.push_back(std::move(pair.shown));
  }
}

void add_note_of_bounds(Comparison& comparison) {
  const auto judged = std::count_if(comparison.pairs.begin(), comparison.pairs.end(),
                                    [](const Compared& pair) { return pair.widened.has_value(); });
  if (judged > 0)
    comparison.notes.push_back(
        fmt::format("{} judged with the interval widened by what the witness and the system's "
                    "counts say: the machine was disturbed; OLD and NEW are the fastest visits",
                    judged == 1 ? "1 time was" : fmt::format("{} times were", judged)));
}

double median_of_all(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The noise floors that the files quote for these lengths: what three visits a cell can tell.
void add_note_of_floors(const std::vector<RowPair>& times, const RowsFile& before,
                        const RowsFile& after, Comparison& comparison) {
  const FloorAt *least = nullptr, *most = nullptr;
  for (const RowPair& pair : times) {
    const Axes& axes = pair.before->key.axes;
    if (!axes.mode || !axes.threads || !axes.length) continue;
    for (const RowsFile* file : {&before, &after}) {
      const FloorAt* const floor =
          nearest_floor(file->run.noise_floor, *axes.mode, *axes.threads, *axes.length);
      if (floor && (!least || floor->share < least->share)) least = floor;
      if (floor && (!most || floor->share > most->share)) most = floor;
    }
  }
  if (!least) return;
  comparison.notes.push_back(fmt::format(
      "noise floor of this machine for cells of {} visits: {:.1f} to {:.1f} % (attnbench noise, "
      "{}); the verdicts follow from the visits of these files",
      kRounds, 100 * least->share, 100 * most->share, most->measured_at.substr(0, 10)));
}

// What noise hides, and what all times share.
void add_notes_of_times(const RowsFile& before, const RowsFile& after,
                        const std::vector<Tested>& tested, Comparison& comparison) {
  std::vector<double> least, shifts;
  const auto tests = std::count_if(tested.begin(), tested.end(),
                                   [](const Tested& pair) { return pair.change.has_value(); });
  for (const Tested& pair : tested)
    if (pair.change && pair.shown.measure == Measure::speed) {
      least.push_back(pair.margin + reach(*pair.change, 1 - 0.05 / static_cast<double>(tests)));
      shifts.push_back(pair.change->value);
    }
  if (least.empty()) return;
  comparison.notes.push_back(
      fmt::format("noise: a time must change by {:.1f} % to be seen in half of such pairs (median "
                  "of {})",
                  100 * std::expm1(median_of_all(least)), least.size()));
  const double shift = std::expm1(median_of_all(shifts));
  if (shifts.size() >= 5 && std::abs(shift) > 0.01)
    comparison.notes.push_back(
        fmt::format("the median of all {} times changed by {:+.1f} %: either all became so, or the "
                    "machine did",
                    shifts.size(), 100 * shift));
  const std::optional<double> peak = peak_ratio(before.run, after.run);
  if (peak && std::abs(*peak - 1) > 0.02)
    comparison.notes.push_back(
        fmt::format("the machine's own multiply-add peak changed by {:+.1f} % between the files",
                    100 * (*peak - 1)));
}

}  // namespace

int64_t Comparison::count(Judgement verdict) const {
  return std::count_if(pairs.begin(), pairs.end(),
                       [&](const Compared& pair) { return pair.verdict == verdict; });
}

Comparison compare(const RowsFile& before, const RowsFile& after, const CompareRequest& request) {
  Pairs found = pairs_of(before, after, request.measures);
  std::vector<RowPair> times, scores, exact;
  for (const RowPair& pair : found.usable) {
    const Measure measure = pair.before->key.measure;
    (measure == Measure::speed      ? times
     : measure == Measure::accuracy ? scores
                                    : exact)
        .push_back(pair);
  }
  if (!times.empty()) require_comparable(before, after, request);
  Comparison comparison{.threshold = request.threshold,
                        .pairs = {},
                        .left_out = std::move(found.left_out),
                        .before_only = found.before_only,
                        .after_only = found.after_only,
                        .notes = {}};
  const BothMachines seen = machines_of(before, after, request);
  std::vector<Tested> tested =
      request.across_machines ? times_to_exact(times, request.threshold, seen, comparison.left_out)
                              : times_alone(times, request.threshold, seen);
  for (Tested& pair : compared_scores(scores, request.threshold)) tested.push_back(std::move(pair));
  if (!request.across_machines) {
    add_notes_of_times(before, after, tested, comparison);
    add_note_of_floors(times, before, after, comparison);
  }
  judge(tested, comparison);
  add_note_of_bounds(comparison);
  for (const RowPair& pair : exact)
    comparison.pairs.push_back(compared_exactly(pair, request.threshold));
  std::stable_sort(comparison.pairs.begin(), comparison.pairs.end(),
                   [](const Compared& a, const Compared& b) { return a.measure < b.measure; });
  return comparison;
}

std::string verdict_word(Measure measure, Judgement verdict) {
  if (verdict != Judgement::worse && verdict != Judgement::better) return name_of(verdict);
  const bool is_worse = verdict == Judgement::worse;
  switch (measure) {
    case Measure::speed:
      return is_worse ? "slower" : "faster";
    case Measure::memory:
      return is_worse ? "more memory" : "less memory";
    case Measure::accuracy:
      return is_worse ? "less accurate" : "more accurate";
    case Measure::fidelity:
      return is_worse ? "less exact" : "more exact";
    case Measure::reach:
      return is_worse ? "reaches less far" : "reaches farther";
  }
  return "";
}

}  // namespace attn
