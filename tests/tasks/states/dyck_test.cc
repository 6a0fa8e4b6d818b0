// dyck against a search for each bracket's partner by counting; its words against all words of a
// small length, its depths against a Markov chain.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/said.h"
#include "tests/tasks/score_of.h"

namespace attn::dyck_test {
namespace {

std::unique_ptr<Task> make(int64_t brackets, int64_t depth, int64_t length) {
  return find_task("dyck").build({{"brackets", brackets}, {"depth", depth}, {"length", length}});
}

// +1 where a bracket opens, -1 where one closes.
std::vector<int32_t> moves_of(const Example& e, int64_t brackets) {
  std::vector<int32_t> moves;
  for (const int32_t token : e.tokens) moves.push_back(token <= brackets ? 1 : -1);
  return moves;
}

// The bracket that a closing one at `position` would close: going back, the first that opens more
// than was closed since. -1: none.
int64_t partner(const std::vector<int32_t>& moves, int64_t position) {
  int32_t sum = 0;
  for (int64_t i = position - 1; i >= 0; i--)
    if ((sum += moves[static_cast<size_t>(i)]) > 0) return i;
  return -1;
}

void expect_solved(const Task& task, const Example& e) {
  const int64_t brackets = task.params().integer("brackets"), length = std::ssize(e.tokens);
  const std::vector<int32_t> moves = moves_of(e, brackets);
  int32_t depth = 0, deepest = 0, farthest = 0;
  for (int64_t i = 0; i < length; i++) {
    const auto at = static_cast<size_t>(i);
    depth += moves[at];
    deepest = std::max(deepest, depth);
    ASSERT_GE(depth, 0);
    if (moves[at] < 0) {
      const int64_t opened = partner(moves, i);
      ASSERT_GE(opened, 0);
      ASSERT_EQ(e.tokens[at], e.tokens[static_cast<size_t>(opened)] + brackets) << i;
    }
    const bool scored = i + 1 < length && moves[at] < 0 && moves[at + 1] < 0;
    if (!scored) {
      ASSERT_EQ(e.target[at], kIgnoredLabel);
      ASSERT_EQ(e.distances[at], -1);
      continue;
    }
    const int64_t open = partner(moves, i + 1);
    ASSERT_EQ(e.target[at], e.tokens[static_cast<size_t>(open)] - 1) << i;
    ASSERT_EQ(e.distances[at], i - open);
    farthest = std::max(farthest, e.distances[at]);
  }
  ASSERT_LE(deepest, task.params().integer("depth"));
  ASSERT_EQ(e.slices.at("depth"), deepest);
  ASSERT_EQ(e.slices.at("max_gap"), farthest);
}

TEST(Dyck, CountingBackwardsKnowsEveryLabel) {
  for (const auto& [task, count] : {std::pair{std::shared_ptr(make(8, 5, 128)), 10000},
                                    {std::shared_ptr(make(2, 3, 64)), 1000},
                                    {std::shared_ptr(make(30, 40, 200)), 300}}) {
    const TaskShape shape = task->shape();
    EXPECT_TRUE(shape.per_token && shape.causal);
    for (int64_t i = 0; i < count; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(std::ssize(e.tokens), shape.length);
      ASSERT_EQ(e.evidence, first_positions(e.tokens.size()));
      ASSERT_NO_FATAL_FAILURE(expect_solved(*task, e)) << i;
    }
  }
}

// Odds of all ways up and down of a length, by the datasheet's words.
void enumerate(int64_t length, int32_t most, std::vector<int32_t>& way, int32_t depth, double odds,
               std::map<std::vector<int32_t>, double>& all) {
  if (std::ssize(way) == length) {
    all[way] = odds;
    return;
  }
  for (const int32_t move : {1, -1}) {
    const bool forced = depth == 0 || depth == most;
    if (forced && (move > 0) != (depth == 0)) continue;
    way.push_back(move);
    enumerate(length, most, way, depth + move, forced ? odds : odds / 2, all);
    way.pop_back();
  }
}

bool has_label(const std::vector<int32_t>& way) {
  for (size_t i = 0; i + 1 < way.size(); i++)
    if (way[i] < 0 && way[i + 1] < 0) return true;
  return false;
}

TEST(Dyck, ShortWordsComeWithTheirOdds) {
  constexpr int64_t kLength = 10, kMost = 3, kCount = 10000;
  std::map<std::vector<int32_t>, double> odds, counts;
  std::vector<int32_t> way;
  enumerate(kLength, kMost, way, 0, 1, odds);
  double total = 0, labelled = 0;
  for (const auto& [word, share] : odds) {
    total += share;
    labelled += has_label(word) ? share : 0;
  }
  EXPECT_NEAR(total, 1, 1e-12);
  const auto task = make(5000, kMost, kLength);
  for (int64_t i = 0; i < kCount; i++) counts[moves_of(task->example(5, Split::train, i), 5000)]++;
  double sum = 0, cells = -1;
  for (const auto& [word, share] : odds) {
    if (!has_label(word)) continue;
    const double expected = kCount * share / labelled;
    sum += (counts[word] - expected) * (counts[word] - expected) / expected;
    cells++;
    counts.erase(word);
  }
  EXPECT_TRUE(counts.empty());
  EXPECT_LT(sum, cells + 5 * std::sqrt(2 * cells));
}

TEST(Dyck, DepthsAreThoseOfAMarkovChainAndTypesAreUniform) {
  constexpr int64_t kDepth = 5, kCount = 10000;
  const auto task = make(8, kDepth, 64);
  std::map<size_t, std::vector<double>> counts;
  std::vector<double> labels(8);
  double scored = 0;
  const std::vector<size_t> places = {2, 9, 30, 63};
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::train, i);
    const std::vector<int32_t> moves = moves_of(e, 8);
    size_t depth = 0;
    for (size_t p = 0; p < moves.size(); p++) {
      depth += static_cast<size_t>(moves[p]);  // wraps around: minus 1
      if (std::find(places.begin(), places.end(), p) == places.end()) continue;
      counts[p].resize(kDepth + 1);
      counts[p][depth]++;
    }
    for (const int32_t label : e.target)
      if (label != kIgnoredLabel) labels[static_cast<size_t>(label)]++, scored++;
  }
  std::vector<double> shares(kDepth + 1);
  shares[0] = 1;
  for (size_t p = 0; p < 64; p++) {
    std::vector<double> next(shares.size());
    for (size_t d = 0; d < shares.size(); d++) {
      if (d < kDepth) next[d + 1] += shares[d] * (d == 0 ? 1.0 : 0.5);
      if (d > 0) next[d - 1] += shares[d] * (d == kDepth ? 1.0 : 0.5);
    }
    shares = next;
    if (!counts.count(p)) continue;
    for (size_t d = 0; d < shares.size(); d++)
      EXPECT_LE(std::abs(counts[p][d] - kCount * shares[d]),
                5 * std::sqrt(kCount * shares[d] * (1 - shares[d])))
          << p << ' ' << d;
  }
  // A bracket answers once at most, so that labels are independent.
  for (const double count : labels)
    EXPECT_LT(std::abs(count - scored / 8), 5 * std::sqrt(scored * 7 / 64));
}

// The latest opening bracket is closed where a label stands. Two deep, the only one that is open is
// left open most often.
TEST(Dyck, TheLatestBracketTellsNothingAndCountsAllOfShallowWords) {
  const std::vector<Shortcut> usual = make(8, 5, 64)->shortcuts(1, 2000, 2000);
  EXPECT_NEAR(score_of(usual, "latest opening bracket"), 0.125, 0.01);  // 30,000 labels: 5 sigmas
  EXPECT_NEAR(score_of(usual, "token there"), 0.125, 0.01);
  EXPECT_GT(score_of(usual, "type most often left open"), 0.5);
  EXPECT_EQ(score_of(make(8, 5, 16)->shortcuts(1, 200, 500), "stack of the last 16 tokens"), 1);
  const double windowed = score_of(usual, "stack of the last 16 tokens");
  EXPECT_GT(windowed, 0.8);  // a pair is often short
  EXPECT_LT(windowed, 0.95);
  const std::vector<Shortcut> shallow = make(8, 2, 64)->shortcuts(1, 500, 500);
  EXPECT_EQ(score_of(shallow, "type most often left open"), 1);
}

TEST(Dyck, BadParametersAreClearErrors) {
  EXPECT_TRUE(says(fault_of([&] { make(8, 63, 64); }), "dyck: depth=63 is above length=64 less 2"));
  EXPECT_NO_THROW(make(8, 62, 64));
  EXPECT_TRUE(says(fault_of([&] { make(2, 2, 12); }), "length=12 with brackets=2 and depth=2"));
  EXPECT_TRUE(says(fault_of([&] { make(1, 2, 64); }), "brackets"));
}

}  // namespace
}  // namespace attn::dyck_test
