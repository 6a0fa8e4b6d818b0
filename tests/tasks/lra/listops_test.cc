// listops against a stack machine that reads tokens from left to right, and against the exact
// distribution of tree sizes computed by dynamic programming.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"
#include "tests/said.h"

namespace attn::listops_test {
namespace {

std::unique_ptr<Task> make(std::map<std::string, ParamValue> given) {
  return find_task("listops").build(given);
}

std::unique_ptr<Task> small() {
  return make({{"max_depth", int64_t{4}},
               {"max_args", int64_t{5}},
               {"min_length", int64_t{10}},
               {"length", int64_t{64}}});
}

bool is_operator(int32_t token) { return token >= 11 && token <= 14; }

// Pushes operators as -token and digits as they are; a closing bracket folds the top of the stack.
int run_stack(const std::vector<int32_t>& tokens) {
  std::vector<int> stack;
  for (const int32_t token : tokens) {
    if (token <= 10) stack.push_back(token - 1);
    if (is_operator(token)) stack.push_back(-token);
    if (token != 15) continue;
    std::array<int, 10> count{};
    int args = 0, sum = 0;
    for (; stack.back() >= 0; stack.pop_back(), args++) {
      count[static_cast<size_t>(stack.back())]++;
      sum += stack.back();
    }
    const auto ranked = [&](int rank) {  // the rank-th smallest argument, from 0
      int digit = 0;
      while (rank >= count[static_cast<size_t>(digit)]) rank -= count[static_cast<size_t>(digit++)];
      return digit;
    };
    const int op = -stack.back();
    if (op == 11) stack.back() = ranked(0);
    if (op == 12) stack.back() = ranked(args - 1);
    if (op == 13) {
      const int twice = args % 2 ? 2 * ranked(args / 2) : ranked(args / 2 - 1) + ranked(args / 2);
      stack.back() = static_cast<int>(std::floor(twice / 2.0));
    }
    if (op == 14) stack.back() = sum - 10 * (sum / 10);
  }
  EXPECT_EQ(stack.size(), 1u);
  return stack.at(0);
}

TEST(Listops, StackMachineKnowsTheOperators) {
  EXPECT_EQ(run_stack({11, 5, 3, 9, 15}), 2);           // [MIN 4 2 8 ]
  EXPECT_EQ(run_stack({12, 5, 3, 9, 15}), 8);           // [MAX 4 2 8 ]
  EXPECT_EQ(run_stack({13, 5, 2, 9, 10, 15}), 6);       // [MED 4 1 8 9 ] = floor(12/2)
  EXPECT_EQ(run_stack({13, 5, 4, 15}), 3);              // [MED 4 3 ] = floor(7/2)
  EXPECT_EQ(run_stack({14, 10, 11, 7, 8, 15, 15}), 5);  // [SM 9 [MIN 6 7 ] ] = 15 mod 10
}

TEST(Listops, LabelDepthAndEvidenceAgreeWithTheStackMachine) {
  const auto task = small();
  for (int64_t i = 0; i < 300; i++) {
    const Example e = task->example(5, Split::train, i);
    ASSERT_EQ(e.target.at(0), run_stack(e.tokens));
    int depth = 0, deepest = 0;
    std::vector<int32_t> evidence;
    for (size_t p = 0; p < e.tokens.size(); p++) {
      depth += is_operator(e.tokens[p]) - (e.tokens[p] == 15);
      deepest = std::max(deepest, depth);
      if (e.tokens[p] > 10) continue;
      bool matters = false;
      for (int32_t digit = 1; digit <= 10; digit++) {
        std::vector<int32_t> changed = e.tokens;
        changed[p] = digit;
        matters |= run_stack(changed) != e.target[0];
      }
      if (matters) evidence.push_back(static_cast<int32_t>(p));
    }
    ASSERT_EQ(e.evidence, evidence);
    ASSERT_EQ(e.slices.at("depth"), deepest);
    ASSERT_EQ(e.slices.at("length"), static_cast<double>(e.tokens.size()));
    ASSERT_EQ(e.slices.at("evidence"), static_cast<double>(evidence.size()));
  }
}

// The numbers of arguments of all operators, in the order of their closing brackets.
std::vector<int> arities(const std::vector<int32_t>& tokens) {
  std::vector<int> open = {0}, closed;
  for (const int32_t token : tokens) {
    if (token == 15) {
      closed.push_back(open.back());
      open.pop_back();
    } else {
      open.back()++;
      if (is_operator(token)) open.push_back(0);
    }
  }
  return closed;
}

TEST(Listops, BoundsAreStrictAndReached) {
  const auto task = make({{"max_depth", int64_t{4}},
                          {"max_args", int64_t{3}},
                          {"min_length", int64_t{9}},
                          {"length", int64_t{13}}});
  size_t shortest = 100, longest = 0;
  double deepest = 0;
  int fewest = 100, most = 0;
  for (int64_t i = 0; i < 500; i++) {
    const Example e = task->example(1, Split::test, i);
    shortest = std::min(shortest, e.tokens.size());
    longest = std::max(longest, e.tokens.size());
    deepest = std::max(deepest, e.slices.at("depth"));
    for (const int n : arities(e.tokens)) {
      fewest = std::min(fewest, n);
      most = std::max(most, n);
    }
  }
  EXPECT_EQ(shortest, 10u);
  EXPECT_EQ(longest, 12u);
  EXPECT_EQ(deepest, 3);  // a node at depth 4 is a digit
  EXPECT_EQ(fewest, 2);
  EXPECT_EQ(most, 3);
}

using Sizes =
    std::vector<double>;  // probability of each tree length, lengths of `cap` and above left out

Sizes sums(const Sizes& a, const Sizes& b) {
  Sizes result(a.size(), 0.0);
  for (size_t i = 0; i < a.size(); i++)
    for (size_t j = 0; i + j < a.size(); j++) result[i + j] += a[i] * b[j];
  return result;
}

// of_root[n][l]: probability of a tree of l tokens whose root has n arguments (n = 0: a digit),
// from the grammar.
std::vector<Sizes> root_sizes(int depth, int max_depth, int max_args, double value_p, size_t cap) {
  std::vector<Sizes> of_root(static_cast<size_t>(max_args) + 1, Sizes(cap, 0.0));
  const double p = depth < max_depth ? value_p : 0;
  of_root[0][1] = 1 - p;
  if (p == 0) return of_root;
  Sizes child(cap, 0.0);
  for (const Sizes& sizes : root_sizes(depth + 1, max_depth, max_args, value_p, cap))
    for (size_t l = 0; l < cap; l++) child[l] += sizes[l];
  Sizes children = child;
  for (int n = 2; n <= max_args; n++) {
    children = sums(children, child);
    for (size_t l = 2; l < cap; l++)
      of_root[static_cast<size_t>(n)][l] = p / (max_args - 1) * children[l - 2];
  }
  return of_root;
}

TEST(Listops, RootArityAndLengthFollowTheGrammarGivenAcceptance) {
  const auto task = make({{"max_depth", int64_t{4}},
                          {"max_args", int64_t{4}},
                          {"min_length", int64_t{6}},
                          {"length", int64_t{17}},
                          {"value_p", 0.4}});
  constexpr int kCount = 20000;
  std::map<std::pair<int, size_t>, int> seen;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(3, Split::train, i);
    seen[{arities(e.tokens).back(), e.tokens.size()}]++;
  }
  const std::vector<Sizes> expected = root_sizes(1, 4, 4, 0.4, 17);
  double total = 0, chi_square = 0, covered = 0;
  int cells = 0;
  for (const Sizes& sizes : expected)
    for (size_t l = 7; l < 17; l++) total += sizes[l];
  for (int n = 2; n <= 4; n++)
    for (size_t l = 7; l < 17; l++) {
      const double mean = kCount * expected[static_cast<size_t>(n)][l] / total;
      const int count = seen[{n, l}];
      covered += count;
      if (mean < 5) continue;
      chi_square += (count - mean) * (count - mean) / mean;
      cells++;
    }
  EXPECT_EQ(covered, kCount);
  ASSERT_GT(cells, 15);
  EXPECT_LT(chi_square, cells + 5 * std::sqrt(2.0 * cells));  // five standard deviations
}

TEST(Listops, OperatorsAndDigitsAreUniform) {
  const auto task = small();
  std::map<int32_t, double> seen;
  double operators = 0, digits = 0;
  for (int64_t i = 0; i < 5000; i++)
    for (const int32_t token : task->example(2, Split::train, i).tokens) {
      seen[token]++;
      operators += is_operator(token);
      digits += token <= 10;
    }
  EXPECT_EQ(seen[15], operators);
  for (const auto& [token, count] : seen) {
    if (token == 15) continue;
    const double mean = token <= 10 ? digits / 10 : operators / 4;
    EXPECT_LT(std::abs(count - mean), 5 * std::sqrt(mean)) << token;
  }
  EXPECT_EQ(seen.size(), 15u);
}

TEST(Listops, ALevelIsThatOfLongRangeArena) {
  const auto task = make({{"preset", std::string("lra")}});
  EXPECT_EQ(task->shape().length, 2000);
  EXPECT_EQ(task->train_examples(), 96000);
  for (int64_t i = 0; i < 20; i++) {
    const Example e = task->example(1, Split::train, i);
    EXPECT_GT(e.tokens.size(), 500u);
    EXPECT_LT(e.tokens.size(), 2000u);
    EXPECT_LE(e.slices.at("depth"), 9);
    EXPECT_EQ(e.target.at(0), run_stack(e.tokens));
  }
}

TEST(Listops, RootOperatorBeatsTheMajorityClass) {
  const std::vector<Shortcut> shortcuts = small()->shortcuts(1, 3000, 2000);
  const double majority = score_of(shortcuts, "majority"),
               root = score_of(shortcuts, "root operator");
  EXPECT_NEAR(majority, 0.12, 0.03);
  EXPECT_GT(root, majority + 0.05);
  EXPECT_LT(root, 0.4);
  EXPECT_EQ(score_of(shortcuts, "first token"), root);  // the root stands first
  EXPECT_GT(score_of(shortcuts, "root operator, its digits"), root + 0.05);
  EXPECT_LT(score_of(shortcuts, "root operator, its digits"), 0.9);
}

TEST(Listops, ImpossibleLengthsAreClearErrors) {
  const auto message = [](std::map<std::string, ParamValue> given) -> std::string {
    return fault_of([&] { make(std::move(given)); });
  };
  const std::string empty = message({{"min_length", int64_t{127}}, {"length", int64_t{128}}});
  EXPECT_TRUE(says(empty, "min_length=127"));
  // Two arguments at most: lengths are 1, 4, 7, 10, …, so nothing lies strictly between 10 and 13.
  const std::string gap =
      message({{"max_args", int64_t{2}}, {"min_length", int64_t{10}}, {"length", int64_t{13}}});
  EXPECT_TRUE(says(gap, "max_args=2"));
  const std::string small_trees = message({{"max_depth", int64_t{2}}});
  EXPECT_TRUE(says(small_trees, "max_depth=2"));
  EXPECT_EQ(message({{"length", int64_t{128}}}), "");
}

}  // namespace
}  // namespace attn::listops_test
