// reverse against reading the source from its end, its distribution against uniform counts, and its
// scores against their closed forms.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tasks/catalog.h"
#include "tests/tasks/score_of.h"

namespace attn::reverse_test {
namespace {

std::unique_ptr<Task> make(int64_t symbols, int64_t length, int64_t min_length = 0) {
  return find_task("reverse").build(
      {{"symbols", symbols}, {"length", length}, {"min_length", min_length}});
}

TEST(Reverse, TheOutputIsTheSourceReadFromItsEnd) {
  for (const auto& task : {make(16, 32), make(2, 50, 20), make(1100, 7, 2)})
    for (const Split split : {Split::train, Split::test})
      for (int64_t i = 0; i < 200; i++) {
        const Example e = task->example(3, split, i);
        const size_t n = e.tokens.size();
        ASSERT_EQ(e.target.size(), n);
        for (size_t p = 0; p < n; p++) ASSERT_EQ(e.target[p] + 1, e.tokens[n - 1 - p]);
        ASSERT_EQ(e.evidence.size(), n);
        ASSERT_EQ(e.distances, (std::vector<int32_t>{static_cast<int32_t>(n) - 1}));
        ASSERT_EQ(e.slices.at("length"), static_cast<double>(n));
      }
}

TEST(Reverse, LengthsAndSymbolsAreUniform) {
  constexpr int kCount = 8000;
  const auto task = make(5, 14, 10);
  std::vector<double> lengths(15), symbols(6);
  double places = 0;
  for (int64_t i = 0; i < kCount; i++) {
    const Example e = task->example(8, Split::train, i);
    lengths[e.tokens.size()]++;
    for (const int32_t token : e.tokens) symbols[static_cast<size_t>(token)]++;
    places += static_cast<double>(e.tokens.size());
  }
  for (size_t n = 0; n < lengths.size(); n++) {  // five deviations of a binomial count
    const double p = n >= 10 ? 0.2 : 0;
    EXPECT_LE(std::abs(lengths[n] - kCount * p), 5 * std::sqrt(kCount * p * (1 - p))) << n;
  }
  for (size_t s = 0; s < symbols.size(); s++) {
    const double p = s >= 1 ? 0.2 : 0;
    EXPECT_LE(std::abs(symbols[s] - places * p), 5 * std::sqrt(places * p * (1 - p))) << s;
  }
}

TEST(Reverse, ShapeAndScores) {
  const auto task = make(128, 3, 3);
  const TaskShape shape = task->shape();
  EXPECT_EQ(shape.length, 3);
  EXPECT_EQ(shape.outputs, 3);
  EXPECT_EQ(shape.vocab, 129);
  EXPECT_EQ(shape.classes, 128);
  EXPECT_DOUBLE_EQ(task->chance(), std::pow(129, -4));
  EXPECT_DOUBLE_EQ(make(128, 4, 3)->chance(), (std::pow(129, -4) + std::pow(129, -5)) / 2);
  // The first of three symbols is the last in one source of 128.
  const double p = 1.0 / 128;
  constexpr int64_t kCount = 20000;
  EXPECT_NEAR(score_of(task->shortcuts(1, 100, kCount), "copy the source"), p,
              5 * std::sqrt(p / kCount));
}

TEST(Reverse, BadParametersAreClearErrors) {
  const auto message = [](int64_t symbols, int64_t length, int64_t min_length) -> std::string {
    try {
      make(symbols, length, min_length);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(16, 32, 33).find("min_length=33 exceeds length=32"), std::string::npos);
  EXPECT_NE(message(2, 32, 19).find("524288 different inputs"), std::string::npos);
  EXPECT_EQ(message(2, 32, 20), "");
  EXPECT_EQ(message(2, 39, 0), "");  // the shorter half is 20, rounded up
}

}  // namespace
}  // namespace attn::reverse_test
