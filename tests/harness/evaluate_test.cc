// The score's standard error against a hand computation over sequences with labels at several
// positions.
#include "harness/train/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/harness/toy.h"

namespace attn {
namespace {

TEST(Evaluate, CountsScoredPositionsAndTakesSequencesAsTheSample) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  ModelConfig config;
  config.layer = {.variant = &plain, .width = 4, .heads = 1, .feed_forward = 4};
  config.layers = 1;
  config.vocab = 5;
  config.length = 3;
  config.classes = 3;
  config.per_token = true;
  const Encoder model(config);
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
  EXPECT_DOUBLE_EQ(score.accuracy, 0.5);
  // Residuals right - p · scored: 0.5, 0.5, -1, 0; sqrt(1.5 · 4/3) / 6.
  EXPECT_DOUBLE_EQ(score.standard_error, std::sqrt(1.5 * 4 / 3) / 6);
}

}  // namespace
}  // namespace attn
