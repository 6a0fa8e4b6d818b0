// The learner of output sequences: its loss against a cross-entropy by hand, its score against
// greedy outputs compared by hand, what it reports of decoding, and that it learns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/memory.h"
#include "core/ops/ops.h"
#include "harness/model/greedy.h"
#include "harness/train/learner.h"
#include "harness/train/optimizer.h"
#include "harness/train/settings.h"
#include "harness/train/train.h"
#include "variants/catalog.h"

namespace attn::sequence_learner_test {
namespace {

LearnerSpec spec(const char* variant = "full",
                 const std::map<std::string, ParamValue>& variant_params = {}) {
  return {.shape = {.length = 6, .vocab = 5, .classes = 4, .outputs = 6},
          .variant = &find_variant(variant),
          .variant_params = variant_params,
          .training = Params("training", training_params(),
                             {{"width", 16}, {"heads", 2}, {"feed_forward", 32}}),
          .seed = 7,
          .exact = &find_variant("full")};
}

// The model that a learner of this spec holds: the same seed draws the same weights.
EncoderDecoder twin(const LearnerSpec& of) {
  return EncoderDecoder(
      {.model = model_config(of), .outputs = of.shape.outputs, .exact = of.exact});
}

// Sources of 3 to 6 tokens of [1, 5), to be reversed.
Batch batch(uint64_t index, int64_t size = 16) {
  Rng random = rng(2, "sequence_learner_test", index);
  Batch made{.size = size, .length = 6};
  for (int64_t b = 0; b < size; ++b) {
    std::vector<int32_t> source(static_cast<size_t>(random.between(3, 6)));
    for (int32_t& token : source) token = static_cast<int32_t>(random.between(1, 4));
    made.lengths.push_back(std::ssize(source));
    made.distances.push_back(static_cast<int32_t>(source.size()) - 1);
    std::vector<int32_t> target;
    for (auto token = source.rbegin(); token != source.rend(); ++token)
      target.push_back(*token - 1);
    source.resize(6, 0);
    target.resize(6, -1);
    made.tokens.insert(made.tokens.end(), source.begin(), source.end());
    made.targets.insert(made.targets.end(), target.begin(), target.end());
  }
  return made;
}

TEST(SequenceLearner, TheLossIsTheMeanOverTokensAndEnds) {
  const auto learner = make_learner(spec());
  const EncoderDecoder model = twin(spec());
  const Batch given = batch(0, 3);
  double loss = 0, scored = 0;
  for (int64_t b = 0; b < 3; ++b) {  // each sequence alone, without padding
    const int64_t n = given.lengths[static_cast<size_t>(b)];
    const auto source = given.tokens.begin() + 6 * b;
    const auto target = given.targets.begin() + 6 * b;
    const Batch alone{.size = 1, .length = n, .tokens = {source, source + n}};
    std::vector<int32_t> inputs = {5}, labels(target, target + n);
    inputs.insert(inputs.end(), labels.begin(), labels.end());
    labels.push_back(4);
    const Tensor logits = model.decode(model.encode(alone), inputs).value();
    for (size_t i = 0; i < labels.size(); ++i) {
      const real* const row = logits.data() + 5 * i;
      double total = 0;
      for (int c = 0; c < 5; ++c) total += std::exp(static_cast<double>(row[c]));
      loss += std::log(total) - static_cast<double>(row[labels[i]]);
      scored += 1;
    }
  }
  EXPECT_NEAR(learner->loss(given, nullptr).value()[0], loss / scored,
              300 * static_cast<double>(kEpsilon));
}

// Sequences whose target is the model's own output, for some with one token changed or without
// its last one.
TEST(SequenceLearner, TheScoreCountsWholeSequencesAndPlaces) {
  const auto learner = make_learner(spec());
  const EncoderDecoder model = twin(spec());
  for (const auto& weights : {learner->weights(), model.weights()})
    for (const Weight& weight : weights) {  // varied outputs, of which many end
      if (weight.name == "decoder.head")
        for (real& x : weight.value.value().values()) x *= 30;
      if (weight.name == "decoder.head_bias") weight.value.value()[4] = 8;
    }
  Batch given = batch(1, 600);
  const auto outputs = greedy(model, model.encode(given), DecodeBy::states);
  std::fill(given.targets.begin(), given.targets.end(), -1);
  double exact = 0, right = 0, places = 0, near_exact = 0, near = 0;
  for (size_t b = 0; b < outputs.size(); ++b) {
    std::vector<int32_t> target = outputs[b];
    const bool ends = target.back() == 4;
    if (ends || target.size() > 6) target.pop_back();
    if (target.empty()) target = {0};  // an output of nothing but its end is always wrong
    const bool copied = ends && outputs[b].size() > 1;
    const bool changed = b % 3 == 1, cut = b % 3 == 2 && target.size() > 1;
    if (changed) target[0] = (target[0] + 1) % 4;
    if (cut) target.pop_back();
    const bool whole = copied && !changed && !cut;
    exact += whole;
    std::copy(target.begin(), target.end(), given.targets.begin() + static_cast<ptrdiff_t>(6 * b));
    target.push_back(4);
    places += static_cast<double>(target.size());
    for (size_t i = 0; i < std::min(target.size(), outputs[b].size()); ++i)
      right += target[i] == outputs[b][i];
    given.distances[b] = b % 2 ? 9 : 1;
    near += b % 2 == 0;
    near_exact += whole && b % 2 == 0;
  }
  ASSERT_GT(exact, 5);
  ASSERT_LT(exact, 590);
  const Score score = learner->score({given});
  const double p = exact / 600;
  EXPECT_DOUBLE_EQ(score.value, p);
  EXPECT_NEAR(score.standard_error, std::sqrt(p * (1 - p) / 599), 1e-12);
  EXPECT_DOUBLE_EQ(score.token_accuracy, right / places);
  ASSERT_EQ(score.by_distance.size(), 2u);
  EXPECT_EQ(score.by_distance[0].to, 1);
  EXPECT_DOUBLE_EQ(score.by_distance[0].accuracy, near_exact / near);
}

TEST(SequenceLearner, ReportsHowItDecodes) {
  const std::vector<Batch> batches(20, batch(3));
  const auto learner = make_learner(spec());
  const auto decoding = learner->decoding(batches);
  ASSERT_TRUE(decoding);
  EXPECT_EQ(decoding->sequences, 256);  // the first of 320
  EXPECT_GE(decoding->tokens, 256);
  EXPECT_LE(decoding->tokens, 256 * 7);
  EXPECT_EQ(decoding->same, 1);
  EXPECT_GT(decoding->state_s, 0);
  EXPECT_GT(decoding->recompute_s, 0);
  // Two layers: a cache of 7 positions, keys and values of 6.
  EXPECT_EQ(learner->state_bytes(spec().shape),
            2 * (7 + 6) * 2 * 16 * static_cast<int64_t>(sizeof(real)));
  const auto prefixes = make_learner(spec("full", {{"kernel", std::string("materialized")}}));
  EXPECT_FALSE(prefixes->decoding(batches));
  EXPECT_FALSE(prefixes->state_bytes(spec().shape));
  EXPECT_EQ(prefixes->score(batches).value, learner->score(batches).value);
  EXPECT_EQ(make_learner(spec("truncated"))->places(),
            (std::vector<std::string>{"encoder", "decoder"}));
}

// What is made for longer test sequences answers the task's own as if it were not.
TEST(SequenceLearner, RoomForLongerOutputsChangesNothing) {
  LearnerSpec roomy = spec();
  roomy.training = Params("training", training_params(),
                          {{"width", 16},
                           {"heads", 2},
                           {"feed_forward", 32},
                           {"positions", std::string("sinusoidal")}});
  const auto plain = make_learner(roomy);
  roomy.shape.length = roomy.shape.outputs = 48;
  const auto wide = make_learner(roomy);
  const std::vector<Batch> batches = {batch(3)};
  EXPECT_EQ(plain->state_bytes(spec().shape), wide->state_bytes(spec().shape));
  EXPECT_LT(wide->state_bytes(spec().shape), wide->state_bytes(roomy.shape));
  EXPECT_EQ(plain->decoding(batches)->tokens, wide->decoding(batches)->tokens);
  EXPECT_EQ(plain->score(batches).token_accuracy, wide->score(batches).token_accuracy);
}

TEST(SequenceLearner, LearnsToReverseInBlocksItHas) {
  const auto learner = make_learner(spec());
  std::vector<Var> weights;
  for (const Weight& weight : learner->weights()) weights.push_back(weight.value);
  AdamW optimizer(weights, {});
  constexpr int kSteps = 300;
  int64_t fetched = 0;
  for (int step = 0; step < kSteps; ++step) {
    learner->loss(batch(static_cast<uint64_t>(10 + step), 32), nullptr).backward();
    optimizer.step(learning_rate(step, kSteps, 20, 0.01));
    if (step == 20) fetched = memory_use().system_calls;
  }
  EXPECT_EQ(memory_use().system_calls, fetched);
  const Score score = learner->score({batch(5, 200)});
  EXPECT_GT(score.value, 0.9);
  EXPECT_GT(score.token_accuracy, 0.95);
}

}  // namespace
}  // namespace attn::sequence_learner_test
