// The shortcuts for each kind of task; see ladder.h. The ridge regressions take up to 512²
// multiplications per example, the pooled windows 16 pairs per position.
#include "tasks/shortcuts/ladder.h"

#include <algorithm>

#include "core/base/check.h"
#include "tasks/shortcuts/fitted.h"
#include "tasks/shortcuts/grams.h"
#include "tasks/shortcuts/ngrams.h"
#include "tasks/shortcuts/sums.h"
#include "tasks/shortcuts/windows.h"

namespace attn {
namespace {

constexpr size_t kWidth = 512;     // features kept of a bag
constexpr size_t kLabels = 20000;  // labels per position that are looked at: the first ones
// Real values: levels of a single value, and so few that runs of four fit the hash.
constexpr int kFine = 32, kCoarse = 6;

std::vector<Sample> samples(const TaskShape& shape, const std::vector<Example>& examples,
                            size_t most) {
  std::vector<Sample> result;
  for (const Example& e : examples)
    for (size_t i = 0; i < e.target.size() && result.size() < most; i++)
      if (e.target[i] != kIgnoredLabel && static_cast<int64_t>(i) < positions(e, shape))
        result.push_back({&e, i});
  return result;
}

// The two lengths as one key, in 16 steps each.
int64_t length_key(const TaskShape& shape, const Example& e) {
  const auto step = [&](int64_t size) { return (size - 1) * 16 / shape.length; };
  return step(positions(e, shape)) * 16 + (e.second.empty() ? 0 : step(std::ssize(e.second)));
}

Shortcut constant(const TaskShape& shape, const std::vector<Example>& train,
                  const std::vector<Example>& test) {
  if (shape.real) return {"mean of the answers", mean_answer_error(train, test)};
  if (shape.outputs > 0) return {"majority", common_output_score(train, test)};
  return {"majority", lookup_score(train, test, [](const Example&, size_t) { return 0; })};
}

// What the last kWindow tokens are, and nothing else: those are all that a copy can reach.
std::vector<Shortcut> of_last_vector(const TaskShape& shape, const std::vector<Example>& train,
                                     const std::vector<Example>& test) {
  const auto by_place = [](const Example&, size_t i) { return static_cast<int64_t>(i); };
  const auto last = [&](const Example& e, size_t i) {
    const auto here = static_cast<int64_t>(i);
    const bool seen = here >= std::ssize(e.tokens) - kWindow && here < std::ssize(e.tokens);
    return here * shape.vocab + (seen ? e.tokens[i] : kPadToken);
  };
  return {{"position", lookup_score(train, test, by_place)},
          {fmt::format("window of {} (last)", kWindow), lookup_score(train, test, last)}};
}

std::vector<Shortcut> of_numbers(const TaskShape& shape, const std::vector<Example>& train,
                                 const std::vector<Example>& test) {
  const double bag = whole_sums_error(shape, train, test);
  if (shape.vocab > 0) return {{"bag of tokens", bag}};
  return {{"linear in the inputs", linear_error(shape, train, test)}, {"bag of values", bag}};
}

std::vector<Shortcut> of_positions(const TaskShape& shape, const std::vector<Example>& train,
                                   const std::vector<Example>& test) {
  const std::vector<Sample> fit = samples(shape, train, kLabels),
                            score = samples(shape, test, kLabels);
  std::vector<Shortcut> rungs = {
      {"position", lookup_score(train, test,
                                [](const Example&, size_t i) { return static_cast<int64_t>(i); })}};
  if (shape.vocab > 0)
    rungs.push_back({"token there", lookup_score(train, test, [](const Example& e, size_t i) {
                       return i < e.tokens.size() ? e.tokens[i] : kPadToken;
                     })});
  else if (shape.classes <= kMostClasses)
    rungs.push_back({"values there", values_there_score(fit, score, shape)});
  if (shape.edges && shape.vocab > 0 && shape.classes <= kMostClasses)
    rungs.push_back({"bag of neighbours",
                     selected_score(fit, score, shape.classes, kWidth, add_neighbours).test});
  rungs.push_back(
      {fmt::format("window of {} (best)", kWindow), window_around_score(fit, score, shape)});
  return rungs;
}

std::vector<Shortcut> of_sequences(const TaskShape& shape, const std::vector<Example>& train,
                                   const std::vector<Example>& test) {
  const std::vector<Sample> fit = samples(shape, train, train.size()),
                            score = samples(shape, test, test.size());
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
  const auto linear = [&](const SampleFeatures& features) {
    return selected_score(fit, score, shape.classes, kWidth, features).test;
  };
  const auto window = [&] {
    return Shortcut{fmt::format("window of {} (best)", kWindow),
                    best_window_score(fit, score, shape)};
  };
  if (shape.channels > 1) {  // no symbols: a level of one channel is none of another
    rungs.push_back({"bag of values", linear(whole_sums(shape))});
    rungs.push_back(window());
    return rungs;
  }
  rungs.push_back(
      {tokens ? "bag of tokens" : "bag of values", linear(pattern_counts(fine, Patterns::tokens))});
  rungs.push_back({"bag of n-grams to 4", linear(pattern_counts(coarse, Patterns::grams))});
  if (shape.pairs) rungs.push_back({"overlap", linear(overlap(coarse))});
  rungs.push_back(window());
  rungs.push_back({fmt::format("window of {} (pooled)", kWindow),
                   linear(pattern_counts(coarse, Patterns::local))});
  return rungs;
}

}  // namespace

std::vector<Shortcut> ladder(const TaskShape& shape, const std::vector<Example>& train,
                             const std::vector<Example>& test) {
  if (shape.bits) return gram_shortcuts(shape, train, test);
  std::vector<Shortcut> rungs = {constant(shape, train, test)};
  const auto add = [&](const std::vector<Shortcut>& more) {
    rungs.insert(rungs.end(), more.begin(), more.end());
  };
  if (shape.real)
    add(of_numbers(shape, train, test));
  else if (shape.per_token)
    add(shape.compressed ? of_last_vector(shape, train, test) : of_positions(shape, train, test));
  else if (shape.outputs == 0)
    add(of_sequences(shape, train, test));
  return rungs;
}

int64_t ladder_examples(const TaskShape& shape, int64_t wanted) {
  constexpr int64_t kInputs = int64_t{1} << 24, kFewest = 500;
  const int64_t each = shape.length * shape.channels * (shape.pairs ? 2 : 1);
  return std::min(wanted, std::max(kFewest, kInputs / each));
}

}  // namespace attn
