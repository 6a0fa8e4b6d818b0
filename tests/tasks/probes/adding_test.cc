// adding against a sum over its markers, their places against the datasheet, and its ladder against
// what is known of uniform numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"

namespace attn::adding_test {
namespace {

std::unique_ptr<Task> make(int64_t length, const std::string& markers) {
  return find_task("adding").build({{"length", length}, {"markers", markers}});
}

struct Read {
  double sum = 0;
  std::vector<int32_t> marked;
};

// Of pairs (number, marker).
Read read(const Example& e) {
  Read result;
  for (size_t i = 0; i + 1 < e.values.size(); i += 2) {
    EXPECT_GE(e.values[i], 0);
    EXPECT_LT(e.values[i], 1);
    EXPECT_TRUE(e.values[i + 1] == 0 || e.values[i + 1] == 1);
    if (e.values[i + 1] == 0) continue;
    result.sum += static_cast<double>(e.values[i]);
    result.marked.push_back(static_cast<int32_t>(i / 2));
  }
  return result;
}

TEST(Adding, TheAnswerIsTheSumOfTheTwoMarkedNumbers) {
  for (const char* markers : {"halves", "anywhere"})
    for (const int64_t length : {2, 7, 40, 200}) {
      const auto task = make(length, markers);
      for (int64_t i = 0; i < 100; i++) {
        const Example e = task->example(3, Split::validation, i);
        ASSERT_EQ(std::ssize(e.values), 2 * length);
        const auto [sum, marked] = read(e);
        ASSERT_EQ(marked.size(), 2u);
        ASSERT_FLOAT_EQ(e.wanted.at(0), static_cast<float>(sum));
        ASSERT_EQ(e.evidence, marked);
        ASSERT_EQ(e.distances, std::vector<int32_t>{marked[1] - marked[0]});
        ASSERT_EQ(e.slices.at("gap"), marked[1] - marked[0]);
        ASSERT_TRUE(e.target.empty());
      }
    }
}

// Counts of the marked positions against the datasheet's, within five deviations.
TEST(Adding, MarkersAreUniformInTheirHalvesOrAnywhere) {
  constexpr int kCount = 6000;
  for (const bool halves : {true, false}) {
    const auto task = make(9, halves ? "halves" : "anywhere");
    std::vector<double> counts(9, 0.0);
    for (int64_t i = 0; i < kCount; i++)
      for (const int32_t p : task->example(1, Split::train, i).evidence)
        counts[static_cast<size_t>(p)]++;
    for (size_t p = 0; p < counts.size(); p++) {
      const double expected = halves ? (p < 4 ? 1.0 / 4 : 1.0 / 5) : 2.0 / 9;
      const double deviation = std::sqrt(kCount * expected * (1 - expected));
      EXPECT_NEAR(counts[p], kCount * expected, 5 * deviation) << p;
    }
  }
}

TEST(Adding, NumbersAreUniform) {
  const auto task = make(50, "anywhere");
  double sum = 0, square = 0, count = 0;
  for (int64_t i = 0; i < 400; i++) {
    const Example e = task->example(2, Split::test, i);
    for (size_t p = 0; p < e.values.size(); p += 2, count++) {
      const auto x = static_cast<double>(e.values[p]);
      sum += x;
      square += x * x;
    }
  }
  EXPECT_NEAR(sum / count, 1.0 / 2, 5 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(square / count, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / count));
}

TEST(Adding, ShapeAndShortcuts) {
  const auto task = make(40, "halves");
  const TaskShape shape = task->shape();
  EXPECT_TRUE(shape.real);
  EXPECT_EQ(shape.channels, 2);
  EXPECT_EQ(shape.classes, 1);
  EXPECT_EQ(find_task("adding").metric, "mean_squared_error");
  EXPECT_DOUBLE_EQ(task->chance(), 1.0 / 6);
  const std::vector<Shortcut> shortcuts = task->shortcuts(1, 4000, 2000);
  // Squares of the sum's deviation: their own variance is (1/15 + 1/36·1/2) − 1/36 < 1/18.
  const double error = 5 * std::sqrt(1.0 / 18 / 2000);
  EXPECT_NEAR(score_of(shortcuts, "mean of the answers"), 1.0 / 6, error);
  EXPECT_EQ(shortcuts[0].name, "mean of the answers");
  // A number counts where it is marked, one time in 20: its square is what a line can explain.
  EXPECT_NEAR(score_of(shortcuts, "linear in the inputs"), 1.0 / 6 - 2.0 / 20 / 12, error);
  EXPECT_LT(score_of(shortcuts, "bag of values"), 1e-3);
}

TEST(Adding, BadParametersAreClearErrors) {
  EXPECT_THROW(make(1, "halves"), Error);
  EXPECT_THROW(make(10, "thirds"), Error);
}

}  // namespace
}  // namespace attn::adding_test
