// noisy_recall against a scan from each key to where it stood last, and its draws against the
// datasheet's probabilities.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::noisy_recall_test {
namespace {

std::unique_ptr<Task> make(int64_t vocab, int64_t noise_vocab, int64_t length, double noise) {
  return find_task("noisy_recall")
      .build(
          {{"vocab", vocab}, {"noise_vocab", noise_vocab}, {"length", length}, {"noise", noise}});
}

struct Solution {
  std::vector<int32_t> target, distances;
  std::set<int32_t> evidence;
};

// Keys are the tokens up to `keys`; a scan backwards from each.
Solution solve(const std::vector<int32_t>& tokens, int32_t keys) {
  Solution s{std::vector<int32_t>(tokens.size(), -1), std::vector<int32_t>(tokens.size(), -1), {}};
  for (int32_t p = 0; p < std::ssize(tokens); p++) {
    const int32_t asked = tokens[static_cast<size_t>(p)];
    if (asked > keys) continue;
    for (int32_t q = p - 1; q >= 0; q--) {
      if (tokens[static_cast<size_t>(q)] != asked) continue;
      s.target[static_cast<size_t>(p)] = tokens[static_cast<size_t>(q + 1)];
      s.distances[static_cast<size_t>(p)] = p - q - 1;
      s.evidence.insert({q, q + 1, p});
      break;
    }
  }
  return s;
}

TEST(NoisyRecall, LabelsAreFoundByAScan) {
  const struct {
    std::unique_ptr<Task> task;
    int32_t keys, values;
  } settings[] = {
      {make(32, 16, 128, 0.2), 8, 8}, {make(9, 2, 64, 0.7), 3, 4}, {make(40, 1, 32, 0), 19, 20}};
  for (const auto& [task, keys, values] : settings) {
    const int64_t length = task->params().integer("length");
    for (int64_t i = 0; i < 200; i++) {
      const Example e = task->example(3, Split::test, i);
      ASSERT_EQ(std::ssize(e.tokens), length);
      const Solution s = solve(e.tokens, keys);
      ASSERT_EQ(e.target, s.target);
      ASSERT_EQ(e.distances, s.distances);
      ASSERT_EQ(e.evidence, std::vector<int32_t>(s.evidence.begin(), s.evidence.end()));
      ASSERT_NE(e.target[static_cast<size_t>(length - 2)], kIgnoredLabel);
      std::set<int32_t> distinct;
      double queries = 0, gaps = 0;
      for (size_t p = 0; p < e.tokens.size(); p += 2) {
        const bool pair = e.tokens[p] <= keys;
        if (pair) distinct.insert(e.tokens[p]);
        ASSERT_GE(e.tokens[p + 1], keys + 1 + (pair ? 0 : values));
        ASSERT_LE(e.tokens[p + 1], pair ? keys + values : task->params().integer("vocab"));
        if (e.target[p] == kIgnoredLabel) continue;
        queries++, gaps += e.distances[p];
      }
      ASSERT_EQ(e.slices.at("queries"), queries);
      ASSERT_EQ(e.slices.at("keys"), distinct.size());
      ASSERT_NEAR(e.slices.at("mean_gap"), gaps / queries, 1e-9);
    }
  }
}

// Other noise, and another last value of a key, leave every label as it is.
TEST(NoisyRecall, WhatIsNoEvidenceDecidesNothing) {
  const auto task = make(32, 16, 128, 0.4);
  Rng random(5);
  for (int64_t i = 0; i < 100; i++) {
    const Example e = task->example(3, Split::train, i);
    std::vector<int32_t> changed = e.tokens;
    const std::set<int32_t> evidence(e.evidence.begin(), e.evidence.end());
    int64_t changes = 0;
    for (size_t p = 0; p < changed.size(); p++) {
      if (evidence.count(static_cast<int32_t>(p)) || changed[p] <= 8) continue;
      changed[p] =
          static_cast<int32_t>(changed[p] <= 16 ? random.between(9, 16) : random.between(17, 32));
      changes += changed[p] != e.tokens[p];
    }
    ASSERT_GT(changes, 0);
    ASSERT_EQ(solve(changed, 8).target, e.target);
  }
}

TEST(NoisyRecall, KeysValuesAndNoiseAreDrawnAsDocumented) {
  const auto task = make(14, 4, 40, 0.3);  // 5 keys, 5 values, 4 kinds of noise
  std::map<int32_t, double> keys, last, values, noise;
  double slots = 0, noisy = 0;
  for (int64_t i = 0; i < 3000; i++) {
    const Example e = task->any_example(8, Split::train, i);
    std::set<int32_t> seen;
    for (size_t p = 0; p + 2 < e.tokens.size(); p += 2) {
      slots++;
      if (e.tokens[p] > 10) {
        noisy++, noise[e.tokens[p]]++, noise[e.tokens[p + 1]]++;
        continue;
      }
      keys[e.tokens[p]]++;
      if (seen.insert(e.tokens[p]).second) values[e.tokens[p + 1]]++;
    }
    last[e.tokens[e.tokens.size() - 2]]++;
  }
  // One slot of the 19 is never noise; five standard deviations.
  EXPECT_NEAR(noisy / slots, 0.3 * 18 / 19, 5 * std::sqrt(0.3 * 0.7 / slots));
  ASSERT_EQ(keys.size(), 5u);
  ASSERT_EQ(last.size(), 5u);
  ASSERT_EQ(values.size(), 5u);
  ASSERT_EQ(noise.size(), 4u);
  for (const auto* counts : {&keys, &last, &values, &noise}) {
    double total = 0;
    for (const auto& [token, count] : *counts) total += count;
    const double mean = total / static_cast<double>(counts->size());
    for (const auto& [token, count] : *counts)
      EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << token;
  }
}

TEST(NoisyRecall, ShapeAndShortcuts) {
  const auto task = make(32, 16, 128, 0.2);
  EXPECT_EQ(task->shape().vocab, 33);
  EXPECT_TRUE(task->shape().causal && task->shape().per_token);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 33);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 500, 500);
  EXPECT_NEAR(score_of(shortcuts, "majority"), 1.0 / 8, 0.02);
  // A pair before is the key's own with probability 1/8, or shares its value with 1/8 of the rest.
  EXPECT_NEAR(score_of(shortcuts, "random value before"), 1.0 / 8 + 7.0 / 64, 0.02);
  EXPECT_GT(score_of(shortcuts, "commonest value before"),
            score_of(shortcuts, "random value before"));
  EXPECT_LT(score_of(shortcuts, "commonest value before"), 0.5);
}

TEST(NoisyRecall, BadParametersAreClearErrors) {
  const auto message = [](int64_t vocab, int64_t noise_vocab, int64_t length) -> std::string {
    return fault_of([&] { make(vocab, noise_vocab, length, 0.2); });
  };
  EXPECT_TRUE(says(message(32, 16, 63), "length=63 must be even"));
  EXPECT_TRUE(says(message(19, 16, 64), "leaves 1 keys"));
  EXPECT_TRUE(says(message(16, 20, 64), "leaves 0 keys"));
  EXPECT_TRUE(says(message(32, 16, 8), "512 different inputs"));
  EXPECT_EQ(message(32, 16, 16), "");
}

}  // namespace
}  // namespace attn::noisy_recall_test
