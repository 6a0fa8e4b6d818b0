// n-grams in one table of hashes against counts in maps of whole contexts, their sums against 1,
// and the scores of shortcuts against a second computation.
#include "tasks/shortcuts/ngrams.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "tests/tasks/score_of.h"

namespace attn::ngrams_test {
namespace {

// As the header defines them, by recursion; slow.
class Slow {
 public:
  explicit Slow(int64_t classes) : classes_(classes) {}
  void add(const std::vector<int32_t>& before, int32_t label) {
    for (size_t n = 0; n < kGramOrders && n <= before.size(); n++)
      counts_[last(before, n)][label]++;
  }
  double probability(const std::vector<int32_t>& before, int32_t label, int64_t n) const {
    if (n < 0) return 1 / static_cast<double>(classes_);
    const auto length = static_cast<size_t>(n);
    const double shorter = probability(before, label, n - 1);
    if (length > before.size()) return shorter;
    const auto found = counts_.find(last(before, length));
    if (found == counts_.end()) return shorter;
    double seen = 0;
    for (const auto& [other, count] : found->second) seen += count;
    const auto own = found->second.find(label);
    const double different = static_cast<double>(found->second.size());
    return ((own == found->second.end() ? 0 : own->second) + different * shorter) /
           (seen + different);
  }

 private:
  static std::vector<int32_t> last(const std::vector<int32_t>& all, size_t n) {
    return {all.end() - static_cast<ptrdiff_t>(n), all.end()};
  }
  int64_t classes_;
  std::map<std::vector<int32_t>, std::map<int32_t, int>> counts_;
};

// Tokens that often repeat the token two places before, and labels that follow both.
std::vector<Example> examples(int64_t count, int64_t length, uint64_t seed) {
  std::vector<Example> all;
  for (int64_t i = 0; i < count; i++) {
    Rng random = rng(seed, "grams", static_cast<uint64_t>(i));
    Example e;
    for (int64_t at = 0; at <= length; at++) {
      const auto drawn = static_cast<int32_t>(random.between(1, 4));
      e.tokens.push_back(at >= 2 && random.below(3) > 0 ? e.tokens[static_cast<size_t>(at) - 2]
                                                        : drawn);
    }
    for (size_t at = 1; at < e.tokens.size(); at++)
      e.target.push_back(at % 5 == 3 ? kIgnoredLabel : e.tokens[at] - 1);
    e.tokens.pop_back();
    all.push_back(e);
  }
  return all;
}

constexpr int64_t kClasses = 6;  // two never come
const TaskShape kShape = {
    .length = 40, .vocab = 5, .classes = kClasses, .per_token = true, .causal = true, .bits = true};

TEST(NGrams, AreTheCountsOfWholeContextsAndSumToOne) {
  NGrams fast(kClasses);
  Slow slow(kClasses);
  for (const Example& e : examples(200, 40, 1)) {
    std::vector<int32_t> before;
    for (size_t i = 0; i < e.tokens.size(); i++) {
      before.push_back(e.tokens[i]);
      if (i % 7 == 0) {
        std::array<double, kGramOrders> sums{};
        for (int32_t label = 0; label < kClasses; label++) {
          const auto found = fast.probabilities(before, label);
          for (size_t n = 0; n < kGramOrders; n++) {
            sums[n] += found[n];
            ASSERT_DOUBLE_EQ(found[n], slow.probability(before, label, static_cast<int64_t>(n)));
          }
        }
        for (const double sum : sums) ASSERT_NEAR(sum, 1, 1e-12);
      }
      if (e.target[i] == kIgnoredLabel) continue;
      fast.add(before, e.target[i]);
      slow.add(before, e.target[i]);
    }
  }
  fast.clear();
  EXPECT_DOUBLE_EQ(fast.probabilities(std::vector<int32_t>{1, 2}, 3)[5], 1.0 / kClasses);
}

TEST(NGrams, ShortcutsAreMeanBitsOfTrainingAndOfTheContext) {
  const std::vector<Example> train = examples(60, 40, 2), test = examples(30, 40, 3);
  Slow trained(kClasses);
  double bits[2][kGramOrders] = {}, labels = 0;
  const auto each = [](const Example& e, const auto& body) {
    for (size_t i = 0; i < e.tokens.size(); i++)
      if (e.target[i] != kIgnoredLabel)
        body(std::vector<int32_t>(e.tokens.begin(),
                                  e.tokens.begin() + static_cast<ptrdiff_t>(i) + 1),
             e.target[i]);
  };
  for (const Example& e : train)
    each(e, [&](const auto& before, int32_t label) { trained.add(before, label); });
  double mixed = 0;
  for (const Example& e : test) {
    Slow own(kClasses);
    each(e, [&](const auto& before, int32_t label) {
      mixed -= std::log2(0.9 * trained.probability(before, label, 4) +
                         0.1 * own.probability(before, label, 5));
      for (size_t n = 0; n < kGramOrders; n++) {
        bits[0][n] -= std::log2(trained.probability(before, label, static_cast<int64_t>(n)));
        bits[1][n] -= std::log2(own.probability(before, label, static_cast<int64_t>(n)));
      }
      own.add(before, label);
      labels++;
    });
  }
  const std::vector<Shortcut> found = gram_shortcuts(kShape, train, test);
  ASSERT_EQ(found.size(), 2 * kGramOrders + 1);
  EXPECT_NEAR(score_of(found, "n-gram of 5, 9:1 with 6 in context"), mixed / labels, 1e-9);
  EXPECT_EQ(found[0].name, "label frequencies");
  EXPECT_NEAR(found[0].score, bits[0][0] / labels, 1e-9);
  for (size_t n = 0; n < kGramOrders; n++) {
    if (n > 0) {
      EXPECT_NEAR(score_of(found, fmt::format("n-gram of {}", n + 1)), bits[0][n] / labels, 1e-9);
    }
    EXPECT_NEAR(score_of(found, fmt::format("n-gram of {} in context", n + 1)), bits[1][n] / labels,
                1e-9);
  }
  EXPECT_LT(score_of(found, "n-gram of 3"), score_of(found, "n-gram of 2") - 0.1)
      << "a third of the tokens tell nothing but by the token two places before";
}

}  // namespace
}  // namespace attn::ngrams_test
