// The score's standard error against a hand computation over sequences with labels at several
// positions.
#include "harness/train/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/harness/train/toy.h"

namespace attn::evaluate_test {
namespace {

ModelConfig labels_per_token() {
  ModelConfig config;
  config.layer = {.variant = &toy::plain(), .width = 4, .heads = 1, .feed_forward = 4};
  config.layers = 1;
  config.vocab = 5;
  config.length = 3;
  config.classes = 3;
  config.per_token = true;
  return config;
}

TEST(Evaluate, CountsScoredPositionsAndTakesSequencesAsTheSample) {
  const Encoder model(labels_per_token());
  Batch batch{.size = 4, .length = 3, .tokens = {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}};
  // Labels made from the model's own answers: right in 2 of 3, 1 of 1, 0 of 2 and 0 of 0 scored
  // positions.
  const Tensor logits = model.forward(batch).value();
  const int verdict[12] = {1, 1, 0, 1, -1, -1, 0, 0, -1, -1, -1, -1};  // right, wrong, not scored
  for (int64_t i = 0; i < 12; ++i) {
    const real* row = logits.data() + 3 * i;
    const int32_t answer = static_cast<int32_t>(std::max_element(row, row + 3) - row);
    batch.targets.push_back(verdict[i] < 0 ? kIgnoredLabel
                            : verdict[i]   ? answer
                                           : (answer + 1) % 3);
  }
  const Score score = evaluate(model, {batch});
  EXPECT_DOUBLE_EQ(score.value, 0.5);
  // Residuals right - p · scored: 0.5, 0.5, -1, 0; sqrt(1.5 · 4/3) / 6.
  EXPECT_DOUBLE_EQ(score.standard_error, std::sqrt(1.5 * 4 / 3) / 6);
  EXPECT_TRUE(score.by_distance.empty());
  EXPECT_EQ(score.each, (std::vector<double>{2.0 / 3, 1, 0, 0})) << "of each sequence";
}

// 40 sequences of three labels; sequence b's are at distances b % 10, 100 and (unknown), right when
// b is a multiple of 4, always, and never.
TEST(Evaluate, BinsLabelsByDistanceInAboutEqualNumbers) {
  const Encoder model(labels_per_token());
  std::vector<Batch> batches;
  for (int32_t half = 0; half < 2; ++half) {
    Batch batch{.size = 20, .length = 3, .tokens = std::vector<int32_t>(60, 1 + half)};
    const Tensor logits = model.forward(batch).value();
    for (int32_t i = 0; i < 60; ++i) {
      const int32_t b = half * 20 + i / 3;
      const bool right[] = {b % 4 == 0, true, false};
      const int32_t distance[] = {b % 10, 100, -1};
      const real* row = logits.data() + 3 * i;
      const int32_t answer = static_cast<int32_t>(std::max_element(row, row + 3) - row);
      batch.targets.push_back(right[i % 3] ? answer : (answer + 1) % 3);
      batch.distances.push_back(distance[i % 3]);
    }
    batches.push_back(batch);
  }
  const std::vector<DistanceBin> bins = evaluate(model, batches).by_distance;
  // 80 labels, 16 a fifth: four distances of 4 labels each, then 4 .. 7, then what is left and the
  // 40 labels at 100, which stay together.
  ASSERT_EQ(bins.size(), 3u);
  const int64_t from[] = {0, 4, 8}, to[] = {3, 7, 100}, labels[] = {16, 16, 48};
  const double right[] = {4, 4, 42};  // b = 0 12 20 32, 4 16 24 36 and 8 28
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(bins[i].from, from[i]);
    EXPECT_EQ(bins[i].to, to[i]);
    EXPECT_EQ(bins[i].labels, labels[i]);
    EXPECT_DOUBLE_EQ(bins[i].accuracy, right[i] / static_cast<double>(labels[i]));
  }
  // One label a sequence in the first bin: residuals 3/4 four times, -1/4 twelve times.
  EXPECT_DOUBLE_EQ(bins[0].standard_error, std::sqrt((4 * 9 / 16.0 + 12 / 16.0) * 40 / 39) / 16);
}

}  // namespace
}  // namespace attn::evaluate_test
