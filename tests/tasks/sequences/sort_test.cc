// sort against counting how often each number stands in the source, and its scores against their
// closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"

namespace attn::sort_test {
namespace {

std::unique_ptr<Task> make(int64_t symbols, int64_t length, int64_t min_length = 0) {
  return find_task("sort").build(
      {{"symbols", symbols}, {"length", length}, {"min_length", min_length}});
}

std::vector<int32_t> solved(const Example& e, int64_t symbols) {
  std::vector<int32_t> output;
  for (int32_t number = 0; number < symbols; number++)
    output.insert(output.end(),
                  static_cast<size_t>(std::count(e.tokens.begin(), e.tokens.end(), number + 1)),
                  number);
  return output;
}

TEST(Sort, TheOutputHoldsEachNumberAsOftenAsTheSource) {
  for (const auto& task : {make(16, 32), make(2, 50, 20), make(1100, 7, 2)})
    for (const Split split : {Split::train, Split::test})
      for (int64_t i = 0; i < 200; i++) {
        const Example e = task->example(3, split, i);
        ASSERT_EQ(e.target, solved(e, task->params().integer("symbols")));
        ASSERT_EQ(e.evidence.size(), e.tokens.size());
        ASSERT_EQ(e.distances[0], static_cast<int32_t>(e.tokens.size()) - 1);
      }
}

TEST(Sort, NumbersRepeatAsUniformDrawsDo) {
  constexpr int kCount = 4000;
  const auto task = make(16, 24, 24);
  double alike = 0;  // neighbours of the source that are equal: one in 16
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(5, Split::validation, i);
    for (size_t p = 1; p < e.tokens.size(); p++) alike += e.tokens[p] == e.tokens[p - 1];
  }
  const double pairs = 23.0 * kCount, p = 1.0 / 16;
  EXPECT_NEAR(alike, pairs * p, 5 * std::sqrt(pairs * p * (1 - p)));
}

TEST(Sort, ShapeAndScores) {
  const auto task = make(128, 3, 3);
  EXPECT_EQ(task->shape().outputs, 3);
  EXPECT_EQ(task->shape().classes, 128);
  EXPECT_DOUBLE_EQ(task->chance(), std::pow(129, -4));
  // Of the 128³ sources, as many are sorted as there are multisets of three numbers.
  const double p = 130.0 * 129 * 128 / 6 / (128.0 * 128 * 128);
  constexpr int64_t kCount = 20000;
  EXPECT_NEAR(score_of(task->shortcuts(1, 100, kCount), "copy the source"), p,
              5 * std::sqrt(p * (1 - p) / kCount));
  // 20 bits: the even spread is ten zeros and ten ones, C(20, 10) of 2^20 sources.
  const double even = 184756.0 / 1048576;
  EXPECT_NEAR(score_of(make(2, 20, 20)->shortcuts(1, 100, kCount), "evenly spread numbers"), even,
              5 * std::sqrt(even * (1 - even) / kCount));
}

TEST(Sort, BadParametersAreClearErrors) {
  EXPECT_THROW(make(16, 8, 9), Error);
  EXPECT_THROW(make(16, 8, 4), Error);
  EXPECT_NO_THROW(make(16, 8, 5));
}

}  // namespace
}  // namespace attn::sort_test
