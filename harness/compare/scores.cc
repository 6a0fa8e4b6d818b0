// Paired differences of scores; see scores.h.
#include "harness/compare/scores.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/measure/statistics.h"
#include "tasks/api/task.h"

namespace attn {
namespace {

// Above 0 where the score got worse.
double worse_by(const SeedPair& pair) {
  const AccuracyMetrics &before = pair.first->accuracy(), &after = pair.second->accuracy();
  if (!is_error(before.metric)) return before.test - after.test;
  return before.test == after.test ? 0 : std::log(after.test / before.test);
}

// The mean of paired differences and its standard error, each difference with one weight.
Change mean_change(const std::vector<double>& differences) {
  const auto count = static_cast<double>(differences.size());
  Change change{.degrees = count - 1};
  for (const double each : differences) change.value += each / count;
  double squares = 0;
  for (const double each : differences) squares += std::pow(each - change.value, 2);
  change.error = std::sqrt(squares / (count - 1) / count);
  return change;
}

bool is_binary(const std::vector<double>& scores) {
  return std::all_of(scores.begin(), scores.end(), [](double s) { return s == 0 || s == 1; });
}

}  // namespace

std::optional<ScoreChange> change_over_seeds(const std::vector<SeedPair>& seeds) {
  if (seeds.size() < 2) return std::nullopt;
  std::vector<double> differences;
  for (const SeedPair& pair : seeds) {
    differences.push_back(worse_by(pair));
    if (!std::isfinite(differences.back())) return std::nullopt;  // an error of 0 on one side
  }
  return ScoreChange{.change = mean_change(differences)};
}

std::optional<ScoreChange> change_over_examples(const SeedPair& pair) {
  const auto &before = pair.first->accuracy().by_example,
             &after = pair.second->accuracy().by_example;
  if (!before || !after || before->digest != after->digest || before->count != after->count)
    return std::nullopt;
  const std::vector<double> old_scores = unpacked(*before), new_scores = unpacked(*after);
  if (old_scores.size() < 2) return std::nullopt;
  std::vector<double> differences;
  int64_t lost = 0, won = 0;
  for (size_t i = 0; i < old_scores.size(); i++) {
    differences.push_back(old_scores[i] - new_scores[i]);
    lost += differences.back() > 0;
    won += differences.back() < 0;
  }
  if (lost + won == 0) return ScoreChange{.change = {.degrees = 1}};
  // Half an example is added to each side (Agresti and Min 2005): without that, the interval of few
  // examples that changed is too short.
  if (!is_binary(old_scores) || !is_binary(new_scores))
    return ScoreChange{.change = mean_change(differences)};
  const auto count = static_cast<double>(old_scores.size()) + 2;
  const double more_lost = static_cast<double>(lost - won);
  const double squares = static_cast<double>(lost + won) + 1 - more_lost * more_lost / count;
  return ScoreChange{.change = {.value = more_lost / count,
                                .error = std::sqrt(squares) / count,
                                .degrees = std::numeric_limits<double>::infinity()},
                     .least_p = mcnemar(lost, won)};
}

}  // namespace attn
