// Scores of examples, packed for a row and unpacked again; and the digest that names the examples.
#include "harness/train/example_scores.h"

#include <gtest/gtest.h>

#include "core/base/check.h"
#include "harness/cell/metrics.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"

namespace attn::example_scores_test {
namespace {

std::vector<double> there_and_back(const std::vector<double>& each) {
  const ExampleScores packed = example_scores(each, {});
  return unpacked({packed.count, packed.levels, packed.digest, packed.digits});
}

TEST(ExampleScores, ABitEachWhereAnExampleIsRightOrWrong) {
  const std::vector<double> each = {1, 0, 0, 1, 1, 1};
  const ExampleScores packed = example_scores(each, {});
  EXPECT_EQ(packed.digits, "9c");
  EXPECT_EQ(packed.levels, 2);
  EXPECT_EQ(packed.count, 6);
  EXPECT_EQ(there_and_back(each), each);
  EXPECT_EQ(there_and_back({1, 1, 1, 1}), (std::vector<double>{1, 1, 1, 1}));
}

TEST(ExampleScores, ADigitEachWhereAnExampleHasSeveralLabels) {
  const std::vector<double> each = {1, 0, 0.4, 2.0 / 3};
  EXPECT_EQ(example_scores(each, {}).digits, "f06a");
  const std::vector<double> back = there_and_back(each);
  ASSERT_EQ(back.size(), 4u);
  for (size_t i = 0; i < 4; i++) EXPECT_NEAR(back[i], each[i], 1.0 / 30);
}

TEST(ExampleScores, TextsThatAreNoScoresAreRefused) {
  EXPECT_THROW(unpacked({5, 2, "", "f"}), Error) << "two digits are five examples";
  EXPECT_THROW(unpacked({4, 2, "", "ff"}), Error);
  EXPECT_THROW(unpacked({4, 3, "", "ff"}), Error);
  EXPECT_THROW(unpacked({4, 2, "", "g"}), Error);
  EXPECT_THROW(unpacked({-4, 2, "", ""}), Error);
  EXPECT_THROW(unpacked({INT64_MAX, 2, "", "f"}), Error);
}

TEST(ExampleScores, TheDigestIsOfInputsAndLabels) {
  const Batch batch{.size = 1, .length = 2, .tokens = {1, 2}, .lengths = {2}, .targets = {1}};
  const auto digest = [](const Batch& of) { return example_scores({1}, {of}).digest; };
  EXPECT_EQ(digest(batch), digest(batch));
  EXPECT_EQ(digest(batch).size(), 16u);
  Batch other = batch;
  other.tokens = {2, 1};
  EXPECT_NE(digest(other), digest(batch));
  other = batch;
  other.targets = {0};
  EXPECT_NE(digest(other), digest(batch));
  other = batch;
  other.values = {1.5f};
  EXPECT_NE(digest(other), digest(batch));
}

}  // namespace
}  // namespace attn::example_scores_test
