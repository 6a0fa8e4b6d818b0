// fuzzy_recall against a parse into keys and values and a comparison of all pairs, and its draws
// against the datasheet's probabilities.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::fuzzy_recall_test {
namespace {

std::unique_ptr<Task> make(int64_t vocab, int64_t length, int64_t key_motif, int64_t value_motif,
                           int64_t least_key_motif = 1) {
  return find_task("fuzzy_recall")
      .build({{"vocab", vocab},
              {"length", length},
              {"key_motif", key_motif},
              {"least_key_motif", least_key_motif},
              {"value_motif", value_motif}});
}

struct Pair {
  std::vector<int32_t> key, value;
  int32_t begin;  // of the key
  int32_t middle() const { return begin + static_cast<int32_t>(key.size()); }
};

// Key tokens are those up to `keys`, blanks are `vocab`.
std::vector<Pair> parse(const std::vector<int32_t>& tokens, int32_t keys, int32_t vocab) {
  std::vector<Pair> pairs;
  bool in_key = false;
  for (int32_t p = 0; p < std::ssize(tokens); p++) {
    const int32_t token = tokens[static_cast<size_t>(p)];
    if (token == vocab) {
      EXPECT_TRUE(pairs.empty()) << "a blank within";
      continue;
    }
    if (token <= keys && !in_key) pairs.push_back({{}, {}, p});
    in_key = token <= keys;
    (in_key ? pairs.back().key : pairs.back().value).push_back(token);
  }
  return pairs;
}

struct Solution {
  std::vector<int32_t> target, distances;
  std::set<int32_t> evidence;
  int queries = 0;
};

Solution solve(const std::vector<int32_t>& tokens, int32_t keys, int32_t vocab) {
  Solution s{std::vector<int32_t>(tokens.size(), -1), std::vector<int32_t>(tokens.size(), -1), {}};
  const std::vector<Pair> pairs = parse(tokens, keys, vocab);
  for (size_t i = 0; i < pairs.size(); i++) {
    const auto before = std::find_if(pairs.rend() - static_cast<ptrdiff_t>(i), pairs.rend(),
                                     [&](const Pair& p) { return p.key == pairs[i].key; });
    if (before == pairs.rend()) continue;
    s.queries++;
    for (int32_t k = 0; k < std::ssize(before->value); k++) {
      const auto asked = static_cast<size_t>(pairs[i].middle() + k - 1);
      s.target[asked] = before->value[static_cast<size_t>(k)];
      s.distances[asked] = static_cast<int32_t>(asked) - (before->middle() + k);
      s.evidence.insert(before->middle() + k);
    }
    for (const Pair* pair : {&*before, &pairs[i]})
      for (int32_t p = pair->begin; p < pair->middle(); p++) s.evidence.insert(p);
  }
  return s;
}

TEST(FuzzyRecall, LabelsAreFoundByComparingWholeKeys) {
  const struct {
    std::unique_ptr<Task> task;
    int32_t keys, vocab;
  } settings[] = {{make(16, 128, 3, 3), 7, 16},
                  {make(8, 60, 2, 1), 3, 8},
                  {make(12, 96, 2, 5, 2), 5, 12},
                  {make(5, 80, 1, 1), 2, 5}};
  for (const auto& [task, keys, vocab] : settings) {
    const Params& p = task->params();
    for (int64_t i = 0; i < 150; i++) {
      const Example e = task->example(3, Split::test, i);
      ASSERT_EQ(std::ssize(e.tokens), p.integer("length"));
      const Solution s = solve(e.tokens, keys, vocab);
      ASSERT_EQ(e.target, s.target);
      ASSERT_EQ(e.distances, s.distances);
      ASSERT_EQ(e.evidence, std::vector<int32_t>(s.evidence.begin(), s.evidence.end()));
      ASSERT_EQ(e.slices.at("queries"), s.queries);
      const std::vector<Pair> pairs = parse(e.tokens, keys, vocab);
      ASSERT_EQ(e.slices.at("pairs"), pairs.size());
      std::map<std::vector<int32_t>, std::vector<int32_t>> map;
      for (const Pair& pair : pairs) {
        ASSERT_EQ(map.emplace(pair.key, pair.value).first->second, pair.value);
        ASSERT_GE(std::ssize(pair.key), p.integer("least_key_motif"));
        ASSERT_LE(std::ssize(pair.key), p.integer("key_motif"));
        ASSERT_LE(std::ssize(pair.value), p.integer("value_motif"));
        for (const auto* motif : {&pair.key, &pair.value})
          ASSERT_EQ(std::set<int32_t>(motif->begin(), motif->end()).size(), motif->size());
      }
      ASSERT_LT(map.size(), pairs.size());  // the last key stood before
      ASSERT_LT(pairs[0].begin, 2 * (p.integer("key_motif") + p.integer("value_motif")));
      // The value's last token follows the last label.
      ASSERT_EQ(e.target[e.tokens.size() - 2], e.tokens.back());
    }
  }
}

// Values that nothing is read from, in keys that come once or for the last time: other tokens there
// leave the labels as they are.
TEST(FuzzyRecall, WhatIsNoEvidenceDecidesNothing) {
  const auto task = make(16, 128, 3, 3);
  Rng random(5);
  for (int64_t i = 0; i < 100; i++) {
    const Example e = task->example(3, Split::train, i);
    const std::set<int32_t> evidence(e.evidence.begin(), e.evidence.end());
    std::vector<int32_t> changed = e.tokens;
    int64_t changes = 0;
    for (size_t p = 0; p < changed.size(); p++) {
      if (evidence.count(static_cast<int32_t>(p)) || changed[p] <= 7 || changed[p] == 16) continue;
      changed[p] = static_cast<int32_t>(random.between(8, 15));
      changes += changed[p] != e.tokens[p];
    }
    ASSERT_GT(changes, 0);
    ASSERT_EQ(solve(changed, 7, 16).target, e.target);
  }
}

TEST(FuzzyRecall, SizesAndTokensAreDrawnAsDocumented) {
  const auto task = make(8, 64, 2, 3);  // 3 keys' tokens, 4 values'
  std::map<std::vector<int32_t>, double> keys, values[4];
  double pairs = 0, place = 0;
  constexpr int kCount = 4000;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->any_example(8, Split::train, i);
    std::set<std::vector<int32_t>> seen;
    std::vector<Pair> all = parse(e.tokens, 3, 8);
    const std::vector<int32_t> last = all.back().key;
    all.pop_back();  // drawn otherwise
    for (const Pair& pair : all) {
      pairs++, keys[pair.key]++;
      if (seen.insert(pair.key).second) values[pair.value.size()][pair.value]++;
    }
    ASSERT_TRUE(seen.count(last));
    place += (static_cast<double>(std::distance(seen.begin(), seen.find(last))) + 0.5) /
             static_cast<double>(seen.size());
  }
  EXPECT_NEAR(place / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));  // any of them alike
  // How many pairs fit depends on their sizes: an example ends on a long pair more often, by which
  // a size's share may move by less than one pair in the five or more that an example has.
  ASSERT_EQ(keys.size(), 9u);
  for (const auto& [key, count] : keys)
    EXPECT_NEAR(count / pairs, key.size() == 1 ? 1.0 / 6 : 1.0 / 12, 0.01) << key[0];
  for (size_t size = 1; size <= 3; size++) {
    ASSERT_EQ(values[size].size(), size == 1 ? 4u : size == 2 ? 12u : 24u);
    double total = 0;
    for (const auto& [value, count] : values[size]) total += count;
    const double mean = total / static_cast<double>(values[size].size());
    for (const auto& [value, count] : values[size])
      EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << size << " " << value[0];
  }
}

TEST(FuzzyRecall, ShapeAndShortcuts) {
  const auto task = make(16, 128, 3, 3);
  EXPECT_EQ(task->shape().vocab, 17);
  EXPECT_TRUE(task->shape().causal && task->shape().per_token);
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 17);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 500, 500);
  EXPECT_NEAR(score_of(shortcuts, "majority"), 1.0 / 8, 0.02);
  for (const Shortcut& shortcut : shortcuts) EXPECT_LT(shortcut.score, 0.75) << shortcut.name;
  // Keys of one token, of values of one: the latest same token is the key.
  const std::vector<Shortcut> plain = make(16, 64, 1, 1)->shortcuts(1, 200, 200);
  EXPECT_EQ(score_of(plain, "after the latest same token"), 1);
}

TEST(FuzzyRecall, BadParametersAreClearErrors) {
  const auto message = [](int64_t vocab, int64_t length, int64_t key_motif, int64_t value_motif,
                          int64_t least) -> std::string {
    return fault_of([&] { make(vocab, length, key_motif, value_motif, least); });
  };
  EXPECT_TRUE(says(message(16, 64, 2, 2, 3), "least_key_motif=3"));
  EXPECT_TRUE(says(message(8, 64, 4, 2, 1), "3 key and 4 value tokens"));
  EXPECT_TRUE(says(message(8, 64, 2, 5, 1), "value_motif=5"));
  EXPECT_TRUE(says(message(16, 11, 3, 3, 1), "at least 12, got length=11"));
  EXPECT_TRUE(says(message(6, 24, 2, 2, 1), "5 places of 2 symbols"));
  EXPECT_EQ(message(16, 64, 3, 3, 3), "");
}

}  // namespace
}  // namespace attn::fuzzy_recall_test
