// Means over all labels, and scans of the tokens before a label; see guesses.h for the costs.
#include "tasks/recall/guesses.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "tasks/shortcuts/most_frequent.h"

namespace attn::recall {
namespace {

// The mean of hits / guesses over all labels, where `count` gives both numbers; 0 without guesses.
double mean_score(const std::vector<Example>& test,
                  const std::function<std::pair<int64_t, int64_t>(const Example&, size_t)>& count) {
  double sum = 0;
  int64_t scored = 0;
  for (const Example& e : test)
    for (size_t i = 0; i < e.target.size(); i++) {
      if (e.target[i] == kIgnoredLabel) continue;
      const auto [hits, guesses] = count(e, i);
      if (guesses > 0) sum += static_cast<double>(hits) / static_cast<double>(guesses);
      scored++;
    }
  ATTN_CHECK(scored > 0, "no labels to score");
  return sum / static_cast<double>(scored);
}

}  // namespace

double random_choice_score(
    const std::vector<Example>& test,
    const std::function<std::vector<int32_t>(const Example&, size_t)>& candidates) {
  return mean_score(test, [&](const Example& e, size_t i) {
    const std::vector<int32_t> all = candidates(e, i);
    return std::pair{std::count(all.begin(), all.end(), e.target[i]), std::ssize(all)};
  });
}

double random_listed_value_score(const std::vector<Example>& test) {
  return random_choice_score(test, [](const Example& e, size_t) {
    std::vector<int32_t> values;
    for (size_t i = 1; i < e.evidence.size(); i += 2)
      values.push_back(e.tokens[static_cast<size_t>(e.evidence[i])]);
    return values;
  });
}

double rule_score(const std::vector<Example>& test,
                  const std::function<int32_t(const Example&, size_t)>& rule) {
  return mean_score(test, [&](const Example& e, size_t i) {
    return std::pair{int64_t{rule(e, i) == e.target[i]}, int64_t{1}};
  });
}

double random_token_score(const std::vector<Example>& test, int64_t low, int64_t high) {
  return random_choice_score(test, [low, high](const Example& e, size_t position) {
    std::vector<int32_t> found;
    for (size_t i = 0; i < position; i++)
      if (e.tokens[i] >= low && e.tokens[i] <= high) found.push_back(e.tokens[i]);
    return found;
  });
}

double commonest_token_score(const std::vector<Example>& test, int64_t low, int64_t high) {
  return rule_score(test, [low, high](const Example& e, size_t position) {
    return commonest(e.tokens, position, low, high);
  });
}

int32_t after_latest(const std::vector<int32_t>& tokens, size_t position, size_t run) {
  if (position < run) return -1;
  const auto here = tokens.begin() + static_cast<ptrdiff_t>(position + 1 - run);
  for (auto at = here; at != tokens.begin();) {
    --at;
    if (std::equal(at, at + static_cast<ptrdiff_t>(run), here))
      return *(at + static_cast<ptrdiff_t>(run));
  }
  return -1;
}

int32_t commonest(const std::vector<int32_t>& tokens, size_t position, int64_t low, int64_t high) {
  std::map<int32_t, int64_t> counts;
  for (size_t i = 0; i <= position; i++)
    if (tokens[i] >= low && tokens[i] <= high) counts[tokens[i]]++;
  if (counts.empty()) return -1;
  return most_frequent(counts);
}

}  // namespace attn::recall
