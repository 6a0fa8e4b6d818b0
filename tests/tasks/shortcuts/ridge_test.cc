// Ridge regression on sparse features against data whose best plane is known, and the choice of
// features among very many.
#include "tasks/shortcuts/ridge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/check.h"
#include "core/base/rng.h"
#include "tasks/shortcuts/selection.h"

namespace attn::ridge_test {
namespace {

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

}  // namespace
}  // namespace attn::ridge_test
