// What the ladder fits with: ridge regression, fitted predictors, what remains.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/shortcuts/fitted.h"
#include "tasks/shortcuts/remaining.h"
#include "tasks/shortcuts/ridge.h"
#include "tasks/shortcuts/selection.h"

namespace attn::ridge_test {
namespace {

// Ridge regression on sparse features against data whose best plane is known, and the choice of
// features among very many.

// Three features, of which the label is the sign of 2·first − second; the third is constant.
Rows planes(size_t count, uint64_t index, double unit, double offset) {
  Rng random = rng(1, "ridge_test", index);
  Rows rows;
  for (size_t i = 0; i < count; i++) {
    const double x = random.uniform(-1, 1), y = random.uniform(-1, 1);
    rows.rows.push_back(
        {{0, static_cast<float>(unit * x + offset)}, {1, static_cast<float>(y)}, {2, 3.0f}});
    rows.labels.push_back(2 * x > y);
  }
  return rows;
}

TEST(Ridge, FindsThePlaneWhateverTheUnits) {
  for (const double unit : {1.0, 1000.0})
    for (const double offset : {0.0, 500.0}) {
      const RidgeScore score =
          ridge_score(planes(3000, 0, unit, offset), planes(1000, 1, unit, offset), 3, 2);
      EXPECT_GT(score.test, 0.93) << unit << ' ' << offset;
      EXPECT_GT(score.held_out, 0.93);
    }
}

TEST(Ridge, OnNoiseIsNoBetterThanChanceAndTheHeldOutPartSaysSo) {
  Rng random = rng(2, "ridge_test");
  const auto noise = [&](size_t count) {
    Rows rows;
    for (size_t i = 0; i < count; i++) {
      FeatureRow row;
      for (int32_t k = 0; k < 100; k++) row.emplace_back(k, static_cast<float>(random.uniform()));
      rows.rows.push_back(row);
      rows.labels.push_back(random.coin());
    }
    return rows;
  };
  const RidgeScore score = ridge_score(noise(150), noise(2000), 100, 2);
  EXPECT_NEAR(score.test, 0.5, 0.06);
  EXPECT_LT(score.held_out, 0.8);  // 100 features fit 120 examples perfectly
}

// 2·first − second, and noise of a known variance: with and without.
TEST(Ridge, PredictsNumbersUpToTheirNoise) {
  const auto numbers = [](size_t count, uint64_t index, double noise) {
    Rows rows = planes(count, index, 10, 300);
    rows.labels.clear();
    Rng random = rng(6, "ridge_test", index);
    for (const FeatureRow& row : rows.rows)
      rows.wanted.push_back(row[0].second / 5 - row[1].second +
                            static_cast<float>(noise * random.uniform(-1, 1)));
    return rows;
  };
  EXPECT_LT(ridge_error(numbers(2000, 0, 0), numbers(1000, 1, 0), 3), 1e-3);
  const double square = 1.0 / 3, deviation = std::sqrt(4.0 / 45 / 1000);
  EXPECT_NEAR(ridge_error(numbers(2000, 0, 1), numbers(1000, 1, 1), 3), square, 6 * deviation);
  EXPECT_THROW(ridge_error(numbers(1, 0, 0), {}, 3), Error);
}

TEST(Ridge, OneRowOrNoTestRowsAreEnough) {
  EXPECT_EQ(ridge_score(planes(1, 0, 1, 0), {}, 3, 2).test, 0);
  EXPECT_EQ(ridge_score(planes(1, 0, 1, 0), planes(1, 0, 1, 0), 3, 2).test, 1);
  EXPECT_THROW(ridge_score({}, {}, 3, 2), Error);
}

TEST(Selection, KeepsTheFewFeaturesThatTellTheClassesApart) {
  std::vector<Example> examples(1500);
  Rng random = rng(3, "ridge_test");
  for (Example& e : examples) {
    for (int i = 0; i < 40; i++) e.tokens.push_back(static_cast<int32_t>(random.below(5000)));
    e.target = {random.coin()};
    if (e.target[0]) e.tokens[0] = 5000;
  }
  std::vector<Sample> train, test;
  for (size_t i = 0; i < examples.size(); i++)
    (i < 1000 ? train : test).push_back({&examples[i], 0});
  const SampleFeatures present = [](const Sample& sample, FeatureRow& row) {
    std::vector<bool> seen(6000);
    for (const int32_t token : sample.example->tokens) seen[static_cast<size_t>(token)] = true;
    for (int32_t token = 0; token < 6000; token++)
      if (seen[static_cast<size_t>(token)]) row.emplace_back(token, 1.0f);
  };
  EXPECT_DOUBLE_EQ(selected_score(train, test, 2, 1, present).test, 1);
}

// The fitted predictors on data whose best table and best plane are known.

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

// remaining_score on labels counted by hand.

Example labels(std::vector<int32_t> target) { return {.tokens = {1}, .target = std::move(target)}; }

TEST(Remaining, TakesEveryGivenLabelOutOfTheBag) {
  // Left are {3, 3, 5}: 3 is right; {3, 5}: the smaller is named, right; {5}: right.
  EXPECT_EQ(remaining_score({labels({3, 3, 5})}), 1);
  // {3, 3, 5}: 3 is wrong; {3, 3} and {3}: right.
  EXPECT_DOUBLE_EQ(remaining_score({labels({5, 3, 3})}), 2.0 / 3);
  // Of different labels in falling order only the last is known.
  EXPECT_DOUBLE_EQ(remaining_score({labels({9, 8, 7, 6})}), 0.25);
}

TEST(Remaining, CountsLabelsNotExamplesAndOnlyTheScored) {
  EXPECT_DOUBLE_EQ(
      remaining_score({labels({-1, 4, -1, 4}), labels({2, 1, -1, -1, -1}), labels({7, -1})}),
      4.0 / 5);
  EXPECT_THROW(remaining_score({labels({-1})}), Error);
  EXPECT_THROW(remaining_score({}), Error);
}

}  // namespace
}  // namespace attn::ridge_test
