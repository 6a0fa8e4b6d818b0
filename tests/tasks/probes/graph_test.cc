// graph against a count of votes along its edges, written from the datasheet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::tasks_graph_test {
namespace {

std::unique_ptr<Task> make(int64_t length, int64_t degree, int64_t hops,
                           const std::string& edges = "given") {
  return find_task("graph").build(
      {{"length", length}, {"degree", degree}, {"hops", hops}, {"edges", edges}});
}

// The colour of `node` after `hops` rounds, asked from its edges on.
int32_t colour(const Example& e, int32_t node, int64_t hops) {
  if (hops == 0) return e.tokens[static_cast<size_t>(node)];
  int64_t heard = 0, second = 0;
  for (const auto& [from, to] : e.edges) {
    if (from != node) continue;
    heard++;
    second += colour(e, to, hops - 1) == 2;
  }
  return 2 * second > heard ? 2 : 1;
}

void reach(const Example& e, int32_t node, int64_t hops, std::set<int32_t>& seen) {
  seen.insert(node);
  if (hops == 0) return;
  for (const auto& [from, to] : e.edges)
    if (from == node) reach(e, to, hops - 1, seen);
}

TEST(Graph, LabelsAreTheVotesCounted) {
  for (const int64_t hops : {1, 2})
    for (const int64_t degree : {2, 4, 6}) {
      const auto task = make(degree == 6 ? 64 : 32, degree, hops);
      for (int64_t i = 0; i < 50; i++) {
        const Example e = task->example(1, Split::test, i);
        ASSERT_EQ(std::ssize(e.edges), task->shape().length * (degree + 1));
        for (int32_t node = 0; node < std::ssize(e.tokens); node++) {
          ASSERT_EQ(e.target[static_cast<size_t>(node)], colour(e, node, hops) - 1);
          ASSERT_TRUE(std::count(e.edges.begin(), e.edges.end(), std::pair(node, node)));
          std::set<int32_t> seen;
          reach(e, node, hops, seen);
          ASSERT_EQ(e.distances[static_cast<size_t>(node)],
                    std::max(node - *seen.begin(), *seen.rbegin() - node));
        }
      }
    }
}

// Nodes out of reach may change their colour, one within reach may not.
TEST(Graph, OnlyNodesWithinReachMatter) {
  const auto task = make(64, 4, 2);
  int64_t changes = 0;
  for (int64_t i = 0; i < 30; i++) {
    const Example e = task->example(2, Split::train, i);
    std::set<int32_t> seen;
    reach(e, 5, 2, seen);
    Example far = e, near = e;
    for (int32_t node = 0; node < 64; node++)
      (seen.count(node) ? near : far).tokens[static_cast<size_t>(node)] ^= 3;
    ASSERT_EQ(colour(far, 5, 2) - 1, e.target[5]);
    changes += colour(near, 5, 2) - 1 != e.target[5];
  }
  EXPECT_EQ(changes, 30);  // every vote is turned round, and so is the outcome
}

TEST(Graph, ColoursAndEdgesAreUniform) {
  const auto task = make(32, 4, 1);
  constexpr int kCount = 3000;
  std::vector<double> heard(32, 0.0);
  double second = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(3, Split::validation, i);
    for (const auto& [from, to] : e.edges)
      if (from == 7) heard[static_cast<size_t>(to)]++;
    second += e.slices.at("second") * 32;
    ASSERT_EQ(std::count(e.tokens.begin(), e.tokens.end(), 2),
              std::lround(e.slices.at("second") * 32));
  }
  EXPECT_NEAR(second, kCount * 16, 5 * std::sqrt(kCount * 32 / 4.0));
  EXPECT_EQ(heard[7], kCount);
  const double share = 4.0 / 31, deviation = std::sqrt(kCount * share * (1 - share));
  for (size_t node = 0; node < 32; node++)
    EXPECT_NEAR(heard[node], node == 7 ? kCount : kCount * share, 5 * deviation) << node;
}

TEST(Graph, HiddenEdgesLeaveTheRestAsItIs) {
  const auto given = make(64, 4, 2), hidden = make(64, 4, 2, "hidden");
  EXPECT_TRUE(given->shape().edges);
  EXPECT_FALSE(hidden->shape().edges);
  for (int64_t i = 0; i < 20; i++) {
    const Example a = given->any_example(1, Split::train, i),
                  b = hidden->any_example(1, Split::train, i);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.target, b.target);
    EXPECT_EQ(a.distances, b.distances);
    EXPECT_TRUE(b.edges.empty());
  }
}

TEST(Graph, ShortcutsScoreWhatVotesAreWorth) {
  // One's own vote among five decides when the other four are even: 1/2 + 3/8 · 1/2.
  const double own = 1.0 / 2 + 3.0 / 16;
  const double error = 5 * 0.5 / std::sqrt(20000.0);  // the first labels alone are scored
  const std::vector<Shortcut> once = make(64, 4, 1)->shortcuts(1, 1000, 1000);
  EXPECT_NEAR(score_of(once, "token there"), own, error);
  EXPECT_GT(score_of(once, "bag of neighbours"), 0.99);
  const std::vector<Shortcut> twice = make(64, 4, 2)->shortcuts(1, 1000, 1000);
  EXPECT_LT(score_of(twice, "token there"), 0.62);
  EXPECT_GT(score_of(twice, "bag of neighbours"), 0.75);
  EXPECT_LT(score_of(twice, "bag of neighbours"), 0.85);
  for (const Shortcut& s : make(64, 4, 2, "hidden")->shortcuts(1, 1000, 1000)) {
    // Two rounds of five amplify a larger share, which all nodes together show.
    EXPECT_LT(s.score, s.name == "shares of the colours" ? 0.72 : 0.62) << s.name;
    EXPECT_TRUE(s.name != "shares of the colours" || s.score > 0.64) << s.score;
    EXPECT_NE(s.name, "bag of neighbours");
  }
}

TEST(Graph, BadParametersAreClearErrors) {
  const auto message = [](int64_t length, int64_t degree) -> std::string {
    return fault_of([&] { make(length, degree, 1); });
  };
  EXPECT_TRUE(says(message(64, 3), "degree=3 must be even"));
  EXPECT_TRUE(says(message(32, 32), "degree=32 needs more nodes than length=32"));
  EXPECT_TRUE(says(message(16, 4), "length"));
  EXPECT_EQ(message(33, 32), "");
}

}  // namespace
}  // namespace attn::tasks_graph_test
