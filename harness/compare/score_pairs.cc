// Seeds that both files trained with, grouped; see score_pairs.h.
#include "harness/compare/score_pairs.h"

#include <cmath>
#include <map>

#include "core/base/check.h"
#include "harness/compare/scores.h"
#include "tasks/api/task.h"

namespace attn {
namespace {

struct SeedGroup {
  CellKey key;  // without the seed
  std::string label;
  std::vector<SeedPair> seeds;
};

std::vector<SeedGroup> groups_of(const std::vector<RowPair>& pairs) {
  std::vector<SeedGroup> groups;
  std::map<std::string, size_t> known;
  for (const RowPair& pair : pairs) {
    CellKey key = pair.before->key;
    key.axes.seed.reset();
    const auto [place, is_new] = known.emplace(what_is_measured(key), groups.size());
    if (is_new) groups.push_back({key, pair.label, {}});
    groups[place->second].seeds.emplace_back(pair.before, pair.after);
  }
  return groups;
}

double mean_score_of(const SeedGroup& group, bool of_after) {
  double sum = 0;
  for (const auto& [before, after] : group.seeds)
    sum += (of_after ? after : before)->accuracy().test;
  return sum / static_cast<double>(group.seeds.size());
}

// A label that names one seed names none of several.
std::string label_of_seeds(const SeedGroup& group) {
  const size_t seed = group.label.rfind(" seed=");
  if (group.seeds.size() == 1 || seed == std::string::npos) return group.label;
  const size_t end = group.label.find(' ', seed + 1);
  return group.label.substr(0, seed) + (end == std::string::npos ? "" : group.label.substr(end));
}

}  // namespace

std::vector<Tested> compared_scores(const std::vector<RowPair>& pairs, double threshold) {
  std::vector<Tested> all;
  for (const SeedGroup& group : groups_of(pairs)) {
    const AccuracyMetrics& first = group.seeds[0].first->accuracy();
    const bool is_an_error = is_error(first.metric);
    Tested tested{.shown = {.measure = Measure::accuracy,
                            .label = label_of_seeds(group),
                            .key = group.key,
                            .unit = first.metric,
                            .before = mean_score_of(group, false),
                            .after = mean_score_of(group, true),
                            .is_ratio = is_an_error,
                            .basis = ""},
                  .change = std::nullopt,
                  .margin = is_an_error ? std::log1p(threshold) : threshold};
    Compared& shown = tested.shown;
    if (!is_an_error)
      shown.change = shown.after - shown.before;
    else if (shown.before > 0)
      shown.change = shown.after / shown.before;
    std::optional<ScoreChange> found = change_over_seeds(group.seeds);
    if (found) {
      shown.basis = fmt::format("{} seeds", group.seeds.size());
    } else if (group.seeds.size() == 1 && (found = change_over_examples(group.seeds[0]))) {
      shown.basis = fmt::format("{} examples of one seed", first.by_example->count);
    } else {
      shown.basis = group.seeds.size() == 1 ? "one seed, and no scores of the same examples"
                                            : "an error of 0";
    }
    if (found) {
      tested.change = found->change;
      tested.least_p = found->least_p;
      const double half = reach(found->change), worse = found->change.value;
      shown.low = is_an_error ? std::exp(worse - half) : -worse - half;
      shown.high = is_an_error ? std::exp(worse + half) : -worse + half;
      if (is_an_error) shown.change = std::exp(worse);
    }
    all.push_back(std::move(tested));
  }
  return all;
}

}  // namespace attn
