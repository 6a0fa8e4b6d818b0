// states against permutation matrices and sums; its groups against the axioms, their orders and
// their derived series; its labels and shortcuts against what is known of random walks on groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tasks/states/group.h"
#include "tests/said.h"
#include "tests/tasks/score_of.h"

namespace attn::states_test {
namespace {

using states::Group;

std::unique_ptr<Task> make(const std::string& group, int64_t length, int64_t moves = 0) {
  return find_task("states").build({{"group", group}, {"length", length}, {"moves", moves}});
}

using Matrix = std::vector<std::vector<int32_t>>;

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix result(a.size(), std::vector<int32_t>(a.size()));
  for (size_t i = 0; i < a.size(); i++)
    for (size_t j = 0; j < a.size(); j++)
      for (size_t k = 0; k < a.size(); k++) result[i][j] += a[i][k] * b[k][j];
  return result;
}

// By Laplace's expansion along the first row.
int32_t determinant(const Matrix& m) {
  if (m.size() == 1) return m[0][0];
  int32_t sum = 0;
  for (size_t column = 0; column < m.size(); column++) {
    if (m[0][column] == 0) continue;
    Matrix minor;
    for (size_t i = 1; i < m.size(); i++) {
      minor.push_back(m[i]);
      minor.back().erase(minor.back().begin() + static_cast<ptrdiff_t>(column));
    }
    sum += (column % 2 == 0 ? 1 : -1) * m[0][column] * determinant(minor);
  }
  return sum;
}

// The permutation matrix number `rank` in lexicographic order: row i holds its one in the column of
// the image of i. The digits of the rank in factorial base choose among the images that are left.
Matrix unranked(int32_t points, int32_t rank) {
  std::vector<size_t> left(static_cast<size_t>(points));
  std::iota(left.begin(), left.end(), size_t{0});
  int32_t block = 1;
  for (int32_t i = 2; i <= points; i++) block *= i;
  Matrix m(left.size(), std::vector<int32_t>(left.size()));
  for (int32_t i = 0; i < points; i++) {
    block /= points - i;
    const auto chosen = left.begin() + rank / block;
    m[static_cast<size_t>(i)][*chosen] = 1;
    left.erase(chosen);
    rank %= block;
  }
  return m;
}

// The matrices of a group of permutations in the order of their numbers; the even ones alone have
// determinant 1.
std::vector<Matrix> matrices(int32_t points, bool even_alone) {
  int32_t count = 1;
  for (int32_t i = 2; i <= points; i++) count *= i;
  std::vector<Matrix> result;
  for (int32_t rank = 0; rank < count; rank++)
    if (const Matrix m = unranked(points, rank); !even_alone || determinant(m) == 1)
      result.push_back(m);
  return result;
}

// The number of the product of each prefix, from the words of the datasheet.
std::vector<int32_t> solve_matrices(const std::vector<Matrix>& all,
                                    const std::vector<int32_t>& numbers) {
  std::vector<int32_t> prefix;
  Matrix state = all[0];
  for (const int32_t number : numbers) {
    state = multiply(state, all[static_cast<size_t>(number)]);
    prefix.push_back(static_cast<int32_t>(std::find(all.begin(), all.end(), state) - all.begin()));
  }
  return prefix;
}

std::vector<int32_t> solve_sums(int32_t modulus, const std::vector<int32_t>& numbers) {
  std::vector<int32_t> prefix(numbers.size());
  std::partial_sum(numbers.begin(), numbers.end(), prefix.begin());
  for (int32_t& sum : prefix) sum %= modulus;
  return prefix;
}

std::vector<int32_t> solve(const std::string& group, const std::vector<int32_t>& tokens) {
  static const std::map<std::string, std::vector<Matrix>> permutations = {
      {"s3", matrices(3, false)},
      {"a4_z5", matrices(4, true)},
      {"a5", matrices(5, true)},
      {"s5", matrices(5, false)}};
  std::vector<int32_t> numbers;
  for (const int32_t token : tokens) numbers.push_back(token - 1);
  if (group[0] == 'z') return solve_sums(group == "z2" ? 2 : 60, numbers);
  if (group != "a4_z5") return solve_matrices(permutations.at(group), numbers);
  std::vector<int32_t> left, right, both;
  for (const int32_t number : numbers) {
    left.push_back(number / 5);
    right.push_back(number % 5);
  }
  left = solve_matrices(permutations.at(group), left);
  right = solve_sums(5, right);
  for (size_t i = 0; i < left.size(); i++) both.push_back(left[i] * 5 + right[i]);
  return both;
}

TEST(States, MatricesKnowEveryLabel) {
  const std::map<std::string, int64_t> counts = {{"a5", 10000},  {"s3", 2000},  {"s5", 300},
                                                 {"a4_z5", 300}, {"z60", 2000}, {"z2", 2000}};
  for (const auto& [group, count] : counts) {
    const auto task = make(group, group == "a5" ? 32 : 40);
    EXPECT_TRUE(task->shape().per_token && task->shape().causal);
    for (int64_t i = 0; i < count; i++) {
      const Example e = task->example(3, Split::validation, i);
      ASSERT_EQ(std::ssize(e.tokens), task->shape().length);
      ASSERT_EQ(e.target, solve(group, e.tokens)) << group << ' ' << i;
      for (size_t p = 0; p < e.tokens.size(); p++) {
        ASSERT_EQ(e.evidence[p], static_cast<int32_t>(p));
        ASSERT_EQ(e.distances[p], static_cast<int32_t>(p));
      }
    }
  }
}

// (0 1) and then (1 2) take 0 to 2, 1 to 0 and 2 to 1: images 2 0 1, the fifth of s3.
TEST(States, TheLeftmostPermutationIsAppliedFirst) {
  const Group s3 = Group::named("s3");
  const int32_t swap01 = 2, swap12 = 1;  // images 1 0 2 and 0 2 1
  EXPECT_EQ(s3.product(swap01, swap12), 4);
  EXPECT_EQ(s3.product(swap12, swap01), 3);
}

std::vector<int32_t> closure(const Group& group, const std::set<int32_t>& generators) {
  std::set<int32_t> found = {0};
  for (size_t before = 0; before < found.size();) {
    before = found.size();
    for (const int32_t a : std::vector<int32_t>(found.begin(), found.end()))
      for (const int32_t b : generators) found.insert(group.product(a, b));
  }
  return {found.begin(), found.end()};
}

int32_t inverse_of(const Group& group, int32_t a) {
  for (int32_t b = 0; b < group.order(); b++)
    if (group.product(a, b) == 0 && group.product(b, a) == 0) return b;
  return -1;
}

// The sizes of a group, of the group of its commutators, and so on, until nothing changes.
std::vector<size_t> derived_series(const Group& group) {
  std::vector<int32_t> all(static_cast<size_t>(group.order()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<size_t> sizes = {all.size()};
  for (;;) {
    std::set<int32_t> commutators;
    for (const int32_t a : all)
      for (const int32_t b : all)
        commutators.insert(group.product(group.product(inverse_of(group, a), inverse_of(group, b)),
                                         group.product(a, b)));
    all = closure(group, commutators);
    if (all.size() == sizes.back()) return sizes;
    sizes.push_back(all.size());
  }
}

TEST(States, GroupsKeepTheAxiomsAndHaveTheirOrdersAndSeries) {
  const std::map<std::string, std::vector<size_t>> series = {
      {"z2", {2, 1}}, {"z60", {60, 1}}, {"s3", {6, 3, 1}}, {"a4_z5", {60, 4, 1}},  // 1 is solvable
      {"a5", {60}},   {"s5", {120, 60}}};
  for (const auto& [name, sizes] : series) {
    const Group group = Group::named(name);
    const int32_t n = group.order();
    int64_t broken = 0, commuting = 0;
    for (int32_t a = 0; a < n; a++) {
      broken += group.product(0, a) != a || group.product(a, 0) != a;
      broken += inverse_of(group, a) < 0;
      for (int32_t b = 0; b < n; b++) {
        const int32_t ab = group.product(a, b);
        broken += ab < 0 || ab >= n;
        commuting += ab == group.product(b, a);
        for (int32_t c = 0; c < n; c++)
          broken += group.product(ab, c) != group.product(a, group.product(b, c));
      }
    }
    EXPECT_EQ(broken, 0) << name;
    EXPECT_EQ(commuting == n * n, name[0] == 'z') << name;
    EXPECT_EQ(derived_series(group), sizes) << name;
    const size_t kept = sizes.size() > 1 ? sizes[1] : sizes[0];
    EXPECT_EQ(group.commutative_classes(), static_cast<int32_t>(sizes[0] / kept)) << name;
    for (int32_t a = 0; a < n; a++)  // a class is that of the product in either order
      for (int32_t b = 0; b < n; b++)
        broken += group.commutative_class(group.product(a, b)) !=
                  group.commutative_class(group.product(b, a));
    EXPECT_EQ(broken, 0) << name;
  }
}

// The number of cells less 1 on average, with variance twice that.
double chi_square(const std::vector<double>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); i++)
    if (expected[i] > 0)
      sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
    else
      EXPECT_EQ(counts[i], 0) << "cell " << i;
  return sum;
}

// Counts of the labels at a position against expected shares.
void expect_shares(const Task& task, size_t position, const std::vector<double>& shares) {
  constexpr int kCount = 10000;
  std::vector<double> counts(shares.size()), expected;
  for (int64_t i = 0; i < kCount; i++)
    counts[static_cast<size_t>(task.example(5, Split::train, i).target[position])]++;
  double cells = -1;
  for (const double share : shares) {
    expected.push_back(kCount * share);
    cells += share > 0;
  }
  EXPECT_LT(chi_square(counts, expected), cells + 5 * std::sqrt(2 * cells)) << position;
}

TEST(States, LabelsAreUniformAtEveryPosition) {
  for (const char* const group : {"a5", "s3", "z60"}) {
    const auto task = make(group, 32);
    const auto order = static_cast<size_t>(task->shape().classes);
    for (const size_t position : {size_t{0}, size_t{1}, size_t{8}, size_t{31}})
      expect_shares(*task, position, std::vector<double>(order, 1.0 / static_cast<double>(order)));
  }
}

// With swaps of two points: the walk's distribution by steps. The swaps of s5 are 10.
TEST(States, FewMovesAreAWalkWithSwaps) {
  const auto task = make("s5", 32, 2);
  const std::vector<Matrix> all = matrices(5, false);
  std::vector<size_t> swaps;
  for (size_t i = 0; i < all.size(); i++) {
    int32_t trace = 0;
    for (size_t p = 0; p < 5; p++) trace += all[i][p][p];
    if (trace >= 3) swaps.push_back(i);
  }
  ASSERT_EQ(swaps.size(), 11u);
  const Group s5 = Group::named("s5");
  std::vector<double> shares(120);
  shares[0] = 1;
  for (size_t step = 0; step < 32; step++) {
    std::vector<double> next(120);
    for (size_t a = 0; a < 120; a++)
      for (const size_t b : swaps)
        next[static_cast<size_t>(s5.product(static_cast<int32_t>(a), static_cast<int32_t>(b)))] +=
            shares[a] / 11;
    shares = next;
    if (step == 0 || step == 1 || step == 2 || step == 31) expect_shares(*task, step, shares);
  }
  EXPECT_EQ(make("a5", 32, 3)->example(1, Split::test, 0).tokens.size(), 32u);  // 3-cycles
}

// Two positions are known, and of the others each guess is as good as any other of its class.
TEST(States, ShortcutsKnowTheStartOrTheClass) {
  constexpr int64_t kTest = 2000, kLength = 32;
  for (const auto& [group, order, classes] : {std::tuple{"s3", 6.0, 2.0},
                                              {"a5", 60.0, 1.0},
                                              {"a4_z5", 60.0, 15.0},
                                              {"z60", 60.0, 60.0}}) {
    const std::vector<Shortcut> shortcuts = make(group, kLength)->shortcuts(1, 2000, kTest);
    const std::string where = group;  // clang's lambdas capture no structured binding
    const auto expect = [&](const char* name, double score) {
      EXPECT_NEAR(score_of(shortcuts, name), score,
                  5 * std::sqrt(score * (1 - score) / (kTest * kLength)))
          << where;
    };
    expect("product of the last two", (2 + (kLength - 2) / order) / kLength);
    expect("token there", (1 + (kLength - 1) / order) / kLength);
    if (classes > 1 && classes < order)
      expect("counts of the elements", classes / order);
    else
      EXPECT_THROW(score_of(shortcuts, "counts of the elements"), Error) << group;
  }
}

TEST(States, BadParametersAreClearErrors) {
  EXPECT_TRUE(says(fault_of([&] { make("z2", 19); }), "states: 19 places of 2 symbols"));
  EXPECT_NO_THROW(make("z2", 20));
  EXPECT_TRUE(says(fault_of([&] { make("a5", 32, 2); }), "moves=2 leaves 1 of a5"));
  EXPECT_TRUE(says(fault_of([&] { make("s5", 32, 1); }), "not all 120 elements"));
  EXPECT_TRUE(says(fault_of([&] { make("z60", 32, 2); }), "moves"));
  EXPECT_TRUE(says(fault_of([&] { make("s4", 32); }), "s4"));
}

}  // namespace
}  // namespace attn::states_test
