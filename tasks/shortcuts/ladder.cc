// The rungs by kind of task; see ladder.h. The cost is that of the ridge regressions, up to 512²
// multiplications an example, and of 16 pairs a position for the pooled windows.
#include "tasks/shortcuts/ladder.h"

#include <algorithm>

#include "core/check.h"
#include "tasks/shortcuts/fitted.h"
#include "tasks/shortcuts/grams.h"
#include "tasks/shortcuts/windows.h"

namespace attn {
namespace {

constexpr size_t kWidth = 512;        // features kept of a bag
constexpr size_t kLabels = 20000;     // labels per position that are looked at: the first ones
constexpr int64_t kMostClasses = 64;  // beyond it a linear classifier a class costs too much
// Real values: levels of a single value, and so few that runs of four fit the hash.
constexpr int kFine = 32, kCoarse = 6;

int64_t size_of(const Example& e) { return std::ssize(e.tokens) + std::ssize(e.values); }

std::vector<Sample> samples(const std::vector<Example>& examples, size_t most) {
  std::vector<Sample> result;
  for (const Example& e : examples)
    for (size_t i = 0; i < e.target.size() && result.size() < most; i++)
      if (e.target[i] != kIgnoredLabel && static_cast<int64_t>(i) < size_of(e))
        result.push_back({&e, i});
  return result;
}

// The two lengths as one key, in 16 steps each.
int64_t length_key(const TaskShape& shape, const Example& e) {
  const auto step = [&](int64_t size) { return (size - 1) * 16 / shape.length; };
  return step(size_of(e)) * 16 + (e.second.empty() ? 0 : step(std::ssize(e.second)));
}

std::vector<Shortcut> of_positions(const TaskShape& shape, const std::vector<Example>& train,
                                   const std::vector<Example>& test) {
  std::vector<Shortcut> rungs = {
      {"position", lookup_score(train, test,
                                [](const Example&, size_t i) { return static_cast<int64_t>(i); })}};
  if (shape.vocab > 0)
    rungs.push_back({"token there", lookup_score(train, test, [](const Example& e, size_t i) {
                       return i < e.tokens.size() ? e.tokens[i] : kPadToken;
                     })});
  rungs.push_back(
      {fmt::format("window of {} (best)", kWindow),
       window_before_score(samples(train, kLabels), samples(test, kLabels), shape.classes)});
  return rungs;
}

std::vector<Shortcut> of_sequences(const TaskShape& shape, const std::vector<Example>& train,
                                   const std::vector<Example>& test) {
  const std::vector<Sample> fit = samples(train, train.size()), score = samples(test, test.size());
  const Symbols fine(fit, kFine), coarse(fit, kCoarse);
  const bool tokens = shape.vocab > 0;
  std::vector<Shortcut> rungs = {{tokens ? "first token" : "first value",
                                  lookup_score(train, test, [&](const Example& e, size_t) {
                                    return static_cast<int64_t>(tokens ? e.tokens[0]
                                                                       : fine.of(e.values[0]));
                                  })}};
  const auto key = [&](const Example& e, size_t) { return length_key(shape, e); };
  const int64_t first_key = key(train[0], 0);
  if (std::any_of(train.begin(), train.end(),
                  [&](const Example& e) { return key(e, 0) != first_key; }))
    rungs.push_back({"length", lookup_score(train, test, key)});
  if (shape.classes > kMostClasses) return rungs;
  const auto linear = [&](const Features& features) {
    return selected_score(fit, score, shape.classes, kWidth, features).test;
  };
  rungs.push_back(
      {tokens ? "bag of tokens" : "bag of values", linear(pattern_counts(fine, Patterns::tokens))});
  rungs.push_back({"bag of n-grams to 4", linear(pattern_counts(coarse, Patterns::grams))});
  if (shape.pairs) rungs.push_back({"overlap", linear(overlap(coarse))});
  rungs.push_back(
      {fmt::format("window of {} (best)", kWindow), best_window_score(fit, score, shape.classes)});
  rungs.push_back({fmt::format("window of {} (pooled)", kWindow),
                   linear(pattern_counts(coarse, Patterns::local))});
  return rungs;
}

}  // namespace

std::vector<Shortcut> ladder(const TaskShape& shape, const std::vector<Example>& train,
                             const std::vector<Example>& test) {
  return shape.per_token ? of_positions(shape, train, test) : of_sequences(shape, train, test);
}

int64_t ladder_examples(const TaskShape& shape, int64_t wanted) {
  constexpr int64_t kPositions = int64_t{1} << 24, kFewest = 500;
  const int64_t each = shape.length * (shape.pairs ? 2 : 1);
  return std::min(wanted, std::max(kFewest, kPositions / each));
}

}  // namespace attn
