// The fitted predictors on data whose best table and best plane are known.
#include "tasks/shortcuts/fitted.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "core/base/rng.h"

namespace attn::fitted_test {
namespace {

Example labelled(int32_t token, std::vector<int32_t> target) {
  return {.tokens = {token}, .target = std::move(target)};
}
int64_t first_token(const Example& e, size_t) { return e.tokens[0]; }

TEST(Fitted, LookupPredictsTheMostFrequentLabelOfAKey) {
  const std::vector<Example> train = {labelled(1, {4}), labelled(1, {4}), labelled(1, {5}),
                                      labelled(2, {5}), labelled(2, {5}), labelled(2, {5})};
  const std::vector<Example> test = {labelled(1, {4}), labelled(1, {5}), labelled(2, {5}),
                                     labelled(3, {5})};  // key 3 is new: the majority, 5
  EXPECT_DOUBLE_EQ(lookup_score(train, test, first_token), 0.75);
  EXPECT_DOUBLE_EQ(lookup_score(train, test, [](const Example&, size_t) { return 0; }), 0.75);
}

TEST(Fitted, LookupCanPredictAnotherAnswerThanTheLabel) {
  const std::vector<Example> train = {labelled(1, {4}), labelled(1, {6}), labelled(1, {5})};
  const std::vector<Example> test = {labelled(1, {8}), labelled(1, {7})};
  const auto odd = [](const Example& e, size_t p) { return e.target[p] % 2; };
  EXPECT_DOUBLE_EQ(lookup_score(train, test, first_token, odd), 0.5);
  EXPECT_DOUBLE_EQ(lookup_score(train, test, first_token), 0);
}

TEST(Fitted, LookupBreaksTiesDownAndIgnoresUnscoredPositions) {
  const std::vector<Example> train = {labelled(1, {kIgnoredLabel, 3, 2, kIgnoredLabel})};
  const std::vector<Example> test = {labelled(1, {2, kIgnoredLabel, kIgnoredLabel, 3})};
  EXPECT_DOUBLE_EQ(lookup_score(train, test, first_token), 0.5);
  const auto by_position = [](const Example&, size_t p) { return static_cast<int64_t>(p); };
  EXPECT_DOUBLE_EQ(lookup_score(train, {labelled(1, {kIgnoredLabel, 3, 2})}, by_position), 1);
  EXPECT_THROW(lookup_score({}, test, first_token), Error);
}

TEST(Fitted, TheMostFrequentOutputIsCountedWhole) {
  const std::vector<Example> train = {labelled(1, {4, 5}), labelled(1, {4}), labelled(1, {4, 5}),
                                      labelled(2, {7, 7}), labelled(2, {7, 7})};
  const std::vector<Example> test = {labelled(1, {4, 5}), labelled(1, {7, 7}), labelled(2, {4}),
                                     labelled(2, {4, 5})};
  EXPECT_DOUBLE_EQ(common_output_score(train, test), 0.5);  // of equally many the smallest
  EXPECT_THROW(common_output_score({}, test), Error);
}

TEST(Fitted, TheMeanAnswerIsThatOfTheTrainingExamples) {
  const auto number = [](float wanted) { return Example{.tokens = {1}, .wanted = {wanted}}; };
  EXPECT_DOUBLE_EQ(mean_answer_error({number(1), number(4)}, {number(2), number(5.5f)}),
                   (0.25 + 9) / 2);
  EXPECT_THROW(mean_answer_error({}, {number(1)}), Error);
}

// Points labelled by the largest of three known linear functions.
std::vector<Example> points(int count, uint64_t index, double offset) {
  Rng random = rng(1, "fitted_test", index);
  std::vector<Example> result;
  for (int i = 0; i < count; i++) {
    const double x = random.uniform(-1, 1) + offset, y = random.uniform(-1, 1);
    const double angle = std::atan2(y, x - offset) + M_PI;
    Example e;
    e.values = {static_cast<float>(x), static_cast<float>(y), 0.5f};
    e.target = {std::min(2, static_cast<int32_t>(angle / (2 * M_PI) * 3))};
    result.push_back(std::move(e));
  }
  return result;
}

TEST(Fitted, LinearScoreSeparatesWhatPlanesSeparate) {
  EXPECT_GT(linear_score(points(2000, 0, 0), points(1000, 1, 0), 3), 0.95);
  EXPECT_GT(linear_score(points(2000, 0, 2), points(1000, 1, 2), 3), 0.95);  // needs the bias
}

TEST(Fitted, LinearScoreCannotSeeAProductOfSigns) {
  const auto signs = [](int count, uint64_t index) {
    std::vector<Example> result = points(count, index, 0);
    for (Example& e : result) e.target = {e.values[0] * e.values[1] > 0};
    return result;
  };
  EXPECT_NEAR(linear_score(signs(2000, 2), signs(1000, 3), 2), 0.5, 0.08);
}

TEST(Fitted, LinearScoreStaysCalmWithFewerExamplesThanInputs) {
  std::vector<Example> few;
  for (int32_t i = 0; i < 3; i++) {
    Example e;
    e.values.assign(20, 0.0f);
    e.values[static_cast<size_t>(i)] = 1;
    e.target = {i};
    few.push_back(std::move(e));
  }
  EXPECT_DOUBLE_EQ(linear_score(few, few, 3), 1);
}

}  // namespace
}  // namespace attn::fitted_test
