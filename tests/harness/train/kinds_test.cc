// Batches and learners of every kind of task: channels, real answers, output sequences, edges,
// labels read from one vector; and a head that is paid for scored positions alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "core/ops/ops.h"
#include "harness/train/batches.h"
#include "harness/train/learner.h"
#include "harness/train/optimizer.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"

namespace attn::kinds_test {
namespace {

using toy::Made;

LearnerSpec spec(const TaskShape& shape, const VariantInfo& variant = toy::plain()) {
  const std::map<std::string, ParamValue> settings = {
      {"width", int64_t{8}}, {"layers", int64_t{1}}, {"feed_forward", int64_t{16}}};
  return {.shape = shape,
          .variant = &variant,
          .variant_params = {},
          .training = Params("training", training_params(), settings),
          .seed = 3};
}

const TaskShape kFrames = {.length = 3, .classes = 2, .per_token = true, .channels = 2};

Example frames(int64_t index) {
  Example e;
  e.values = {static_cast<float>(index), 10, 1, 11};  // two positions of two channels
  e.target = {1, kIgnoredLabel, kIgnoredLabel};
  return e;
}

TEST(Kinds, ChannelsOfAPositionStayTogetherAndPaddingCountsPositions) {
  const Made task(kFrames, [](Split, int64_t index) { return frames(index); });
  const Batch batch = split_batches(task, 0, Split::test, 2, 2)[0];
  EXPECT_EQ(batch.values, (std::vector<float>{0, 10, 1, 11, 0, 0, 1, 10, 1, 11, 0, 0}));
  EXPECT_EQ(batch.lengths, (std::vector<int64_t>{2, 2}));
  for (const int64_t cache_bytes : {0, 1 << 20}) {
    TrainingStream stream(task, 0, 4, {.background = false, .cache_bytes = cache_bytes});
    for (int i = 0; i < 8; ++i) {  // two epochs: the second from the cache
      const Batch& next = stream.next();
      EXPECT_EQ(next.values.size(), 4u * 3 * 2);
      EXPECT_EQ(next.values[3], 11);
      EXPECT_EQ(next.lengths, (std::vector<int64_t>{2, 2, 2, 2}));
    }
  }
}

TEST(Kinds, EveryChannelReachesTheLogits) {
  const Encoder model({.layer = {.variant = &toy::plain(), .width = 4, .feed_forward = 6},
                       .channels = 2,
                       .length = 3,
                       .classes = 2,
                       .per_token = true});
  Batch batch{.size = 1,
              .length = 3,
              .tokens = {},
              .values = {1, 2, 3, 4, 5, 6},
              .lengths = {},
              .targets = {}};
  const Tensor before = model.forward(batch).value();
  for (size_t i = 0; i < batch.values.size(); ++i) {
    Batch changed = batch;
    changed.values[i] += 1;
    const Tensor after = model.forward(changed).value();
    EXPECT_FALSE(std::equal(after.data(), after.data() + after.size(), before.data())) << i;
  }
}

// The answer is the sum of the first channel; the second is noise.
Example sum(Split split, int64_t index) {
  Rng random = rng(1, to_string(split), static_cast<uint64_t>(index));
  Example e;
  double total = 0;
  for (int i = 0; i < 3; ++i) {
    const double x = random.uniform();
    total += x;
    e.values.insert(e.values.end(), {static_cast<float>(x), static_cast<float>(random.uniform())});
  }
  e.wanted = {static_cast<float>(total)};
  return e;
}

TEST(Kinds, ARealAnswerIsScoredByItsSquaredErrorAndLearned) {
  const TaskShape shape = {.length = 3, .classes = 1, .channels = 2, .real = true};
  const Made task(shape, sum, 512);
  const std::vector<Batch> test = split_batches(task, 0, Split::test, 100, 32);
  const auto learner = make_learner(spec(shape));
  double squares = 0;
  for (const Batch& batch : test) {  // the loss of a batch is its mean
    ASSERT_EQ(batch.wanted.size(), static_cast<size_t>(batch.size));
    EXPECT_TRUE(batch.targets.empty());
    squares += static_cast<double>(learner->loss(batch, nullptr).value()[0]) *
               static_cast<double>(batch.size);
  }
  const Score before = learner->score(test);
  EXPECT_NEAR(before.value, squares / 100, 1e-5 * before.value);
  EXPECT_GT(before.standard_error, 0);

  std::vector<Var> weights;
  for (const Weight& weight : learner->weights()) weights.push_back(weight.value);
  AdamW optimizer(weights, {});
  TrainingStream stream(task, 0, 32);
  for (int step = 0; step < 300; ++step) {
    learner->loss(stream.next(), nullptr).backward();
    optimizer.step(3e-3);
  }
  EXPECT_LT(learner->score(test).value, 0.025) << "a tenth of the variance, 3 / 12";
}

TEST(Kinds, OutputSequencesFillUpWithIgnoredLabels) {
  const TaskShape shape = {.length = 4, .vocab = 5, .classes = 4, .outputs = 3};
  const Made task(shape, [](Split, int64_t index) {
    Example e;
    e.tokens = {1, 2, 3};
    e.target.assign(static_cast<size_t>(1 + index), 2);
    e.evidence = {0, 2};
    return e;
  });
  const Batch batch = split_batches(task, 0, Split::test, 3, 3)[0];
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{2, -1, -1, 2, 2, -1, 2, 2, 2}));
  EXPECT_EQ(batch.distances, (std::vector<int32_t>{2, 2, 2})) << "one a sequence";
}

TEST(Kinds, EdgesOfABatchFollowItsExamples) {
  const TaskShape shape = {.length = 3, .vocab = 5, .classes = 2, .per_token = true, .edges = true};
  const auto make = [](Split, int64_t index) {
    Example e;
    e.tokens = {1, 2};
    e.target = {0, 1, kIgnoredLabel};
    e.edges = {{0, 0}, {1, 1}};
    if (index % 2) e.edges = {{0, 1}, {1, 0}, {1, 1}};
    return e;
  };
  const Made task(shape, make);
  const Batch batch = split_batches(task, 0, Split::test, 2, 2)[0];
  ASSERT_TRUE(batch.edges);
  EXPECT_EQ(batch.edges->first, (std::vector<int64_t>{0, 1, 2, 2, 3, 5, 5}));
  EXPECT_EQ(batch.edges->keys, (std::vector<int32_t>{0, 1, 1, 0, 1}));
  TrainingStream stream(task, 0, 4);
  for (int i = 0; i < 8; ++i) {
    const Batch& next = stream.next();
    ASSERT_TRUE(next.edges);
    EXPECT_EQ(next.edges->first.size(), 4u * 3 + 1);
    EXPECT_EQ(next.edges->first.back(), std::ssize(next.edges->keys));
  }
}

// The head is asked at scored places alone, and answers what it answers everywhere else.
TEST(Kinds, ScoredLogitsAreThoseOfTheWholeForward) {
  for (const bool compressed : {false, true}) {
    ModelConfig config = toy::tiny();
    config.per_token = true;
    config.compressed = compressed;
    const Encoder model(config);
    Batch batch{.size = 2,
                .length = 5,
                .tokens = {1, 2, 3, 4, 5, 6, 5, 4, 3, 2},
                .values = {},
                .lengths = {},
                .targets = {-1, 2, -1, 0, -1, 1, -1, -1, -1, 2}};
    const Tensor all = model.forward(batch).value();
    ASSERT_EQ(all.shape(), (Shape{2, 5, 3}));
    const Encoder::Scored scored = model.scored(batch);
    EXPECT_EQ(scored.entries, (std::vector<int32_t>{1, 3, 5, 9}));
    for (size_t i = 0; i < scored.entries.size(); ++i)
      for (int64_t c = 0; c < 3; ++c)
        EXPECT_NEAR(scored.logits.value()[static_cast<int64_t>(i) * 3 + c],
                    all[scored.entries[i] * 3 + c], 1e-5);
    const auto loss = [&](const Var& logits, const std::vector<int32_t>& targets) {
      return static_cast<double>(cross_entropy(logits, targets).value()[0]);
    };
    EXPECT_NEAR(loss(scored.logits, {2, 0, 1, 2}), loss(model.forward(batch), batch.targets), 1e-5);
  }
}

// With all tokens but the last one changed, logits of a compressed sequence change everywhere; the
// other positions' vectors are not read.
TEST(Kinds, CompressedLabelsAreReadFromTheLastPosition) {
  ModelConfig config = toy::tiny();
  config.per_token = config.compressed = true;
  config.layer.causal = true;
  config.layers = 1;
  const Encoder model(config);
  Batch batch{.size = 1,
              .length = 5,
              .tokens = {1, 2, 3, 4, 5},
              .values = {},
              .lengths = {},
              .targets = {}};
  const Tensor before = model.forward(batch).value();
  batch.tokens[0] = 6;
  const Tensor after = model.forward(batch).value();
  for (int64_t place = 0; place < 5; ++place)
    EXPECT_NE(before[place * 3], after[place * 3]) << place;
  batch.length = 4;
  batch.tokens.pop_back();
  EXPECT_THROW(model.forward(batch), Error) << "it was built to unfold five";
}

TEST(Kinds, StateBytesAreThoseOfTheDecodersOfAllLayers) {
  class Kept final : public Attention {
   public:
    explicit Kept(const AttentionConfig& config) : Attention(config) {}

   private:
    Var do_forward(const Var&, const Var&, const Var& v, const Mask&) const override { return v; }
    Cost do_cost(const AttentionShape& s) const override {
      Cost cost;
      cost.state_bytes = static_cast<double>(10 * s.kv_len * s.heads * s.head_dim * s.batch);
      return cost;
    }
  };
  VariantInfo kept = toy::variant<Kept>("kept");
  ModelConfig config = toy::tiny();
  config.layers = 3;
  config.layer.variant = &kept;
  config.layer.causal = true;
  EXPECT_EQ(Encoder(config).state_bytes(7), std::nullopt) << "it cannot decode";
  kept.traits.decode = true;
  EXPECT_EQ(Encoder(config).state_bytes(7), 3 * 10 * 7 * 4);
  config.layer.causal = false;
  EXPECT_EQ(Encoder(config).state_bytes(7), std::nullopt) << "nothing is decoded";
}

}  // namespace
}  // namespace attn::kinds_test
