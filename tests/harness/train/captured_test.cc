// Training towards another model's answers: captured, mimicry and rebuilt weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "harness/train/captured.h"
#include "harness/train/mimicry.h"
#include "harness/train/rebuilt.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"
#include "variants/api/stack.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::captured_test {
namespace {

// What is captured from a model is what its attention read when the test split was scored.

std::vector<CapturedLayer>& seen() {
  static std::vector<CapturedLayer> all;
  return all;
}

// The toy's exact attention, which notes what every forward pass gets.
class Noting final : public Attention {
 public:
  explicit Noting(const AttentionConfig& config)
      : Attention(config), plain_(toy::variant<toy::Plain>("plain").build(config, {})) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    seen().push_back({q.value().clone(), k.value().clone(), v.value().clone(), mask.kv_lengths});
    return plain_->forward(q, k, v, mask);
  }
  std::unique_ptr<Attention> plain_;
};

constexpr int64_t kExamples = 16;

TrainRequest capturing(double learning_rate) {
  static const VariantInfo noting = toy::variant<Noting>("noting");
  static const TaskInfo task = toy::counting();
  return {.task = &task,
          .task_params = {},
          .variant = &noting,
          .variant_params = {},
          .training = Params("training", training_params(),
                             {{"layers", int64_t{2}},
                              {"width", int64_t{8}},
                              {"heads", int64_t{2}},
                              {"feed_forward", int64_t{8}},
                              {"steps", int64_t{20}},
                              {"warmup", int64_t{3}},
                              {"eval_every", int64_t{5}},
                              {"learning_rate", learning_rate},
                              {"batch", kExamples},
                              {"validation_examples", int64_t{32}},
                              {"test_examples", kExamples}}),
          .seed = 1,
          .exact = &noting,
          .shortcuts = false};
}

// What was noted is freed after each test: other tests of this process count live bytes.
class CapturedInputs : public testing::Test {
 protected:
  void TearDown() override { seen().clear(); }
};

void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_TRUE(a.shape() == b.shape()) << a.shape().str() << " " << b.shape().str();
  EXPECT_TRUE(std::equal(a.data(), a.data() + a.size(), b.data()));
}

TEST_F(CapturedInputs, IsWhatTheTrainedModelReadsOfTheTestSplit) {
  const TrainResult trained = train(capturing(0.03));
  ASSERT_GE(seen().size(), 2U);
  const std::vector<CapturedLayer> last(seen().end() - 2, seen().end());  // the test score
  const Captured found = captured(capturing(0.03), true, kExamples);
  ASSERT_EQ(found.layers.size(), 2U);
  EXPECT_EQ(found.test, trained.test);
  EXPECT_EQ(found.chance, trained.chance);
  for (size_t i = 0; i < 2; ++i) {
    expect_same(found.layers[i].q, last[i].q);
    expect_same(found.layers[i].k, last[i].k);
    expect_same(found.layers[i].v, last[i].v);
    EXPECT_EQ(found.layers[i].lengths, last[i].lengths);
  }
}

TEST_F(CapturedInputs, BeforeTrainingIsTheModelThatDoesNotLearn) {
  const Captured initial = captured(capturing(0.03), false, 4);
  EXPECT_FALSE(initial.test);
  const Captured still = captured(capturing(0), true, 4),
                 moved = captured(capturing(0.03), true, 4);
  ASSERT_EQ(initial.layers.size(), 2U);
  expect_same(initial.layers[1].q, still.layers[1].q);
  const Tensor &before = initial.layers[1].q, &after = moved.layers[1].q;
  EXPECT_FALSE(std::equal(before.data(), before.data() + before.size(), after.data()));
  EXPECT_EQ(before.dim(0), 4);
}

TEST_F(CapturedInputs, AFirstPositionForClsIsCounted) {
  TaskShape task{.length = 9, .causal = false};
  const auto training = [](const char* pooling) {
    return Params("training", training_params(), {{"pooling", pooling}, {"heads", int64_t{4}}});
  };
  EXPECT_EQ(captured_shape(task, training("cls")).length, 10);
  EXPECT_EQ(captured_shape(task, training("mean")).length, 9);
  EXPECT_EQ(captured_shape(task, training("mean")).head_dim, 16);
}

// The fit before a training: whom it moves, what it lowers, and that a training without it is as
// before.

const TaskInfo& counting() {
  static const TaskInfo info = toy::counting();
  return info;
}

TrainRequest mimicking(int64_t mimicry, const char* variant = "hedgehog") {
  const std::map<std::string, ParamValue> settings = {
      {"width", int64_t{16}},         {"feed_forward", int64_t{8}},
      {"steps", int64_t{3}},          {"batch", int64_t{8}},
      {"warmup", int64_t{0}},         {"validation_examples", int64_t{16}},
      {"test_examples", int64_t{16}}, {kMimicry, mimicry}};
  return {.task = &counting(),
          .task_params = {},
          .variant = &find_variant(variant),
          .variant_params = {},
          .training = Params("training", training_params(), settings),
          .seed = 4,
          .shortcuts = false};
}

LearnerSpec spec_of(const TrainRequest& asked, const Task& task, AttentionWatch watch) {
  LearnerSpec spec{task.shape(),   asked.variant, asked.variant_params,
                   asked.training, asked.seed,    nullptr};
  spec.watch = std::move(watch);
  return spec;
}

// The weights that something else than the loss moves, of the model that a training ends with.
std::vector<Tensor> moved_after(TrainRequest asked) {
  std::vector<Tensor> found;
  asked.inspect = [&](const Learner& best) {
    for (const Weight& weight : best.weights())
      if (weight.moved) found.push_back(weight.value.value().clone());
  };
  train(asked);
  return found;
}

double farthest(const Tensor& one, const Tensor& other) {
  double far = 0;
  for (int64_t j = 0; j < one.size(); ++j)
    far = std::max(far, std::abs(static_cast<double>(one[j] - other[j])));
  return far;
}

TEST(MimicryFit, MovesTheVariantsOwnWeightsAndNoOthers) {
  const TrainRequest asked = mimicking(60);
  const auto task = asked.task->build({});
  MimicryFit fit;
  const auto model = make_learner(spec_of(asked, *task, fit.watch())),
             plain = make_learner(spec_of(asked, *task, {}));
  ASSERT_TRUE(fit.run(*model, *task, asked.training, asked.seed));
  ASSERT_EQ(fit.losses().size(), 60u);
  EXPECT_LT(fit.losses().back(), fit.losses().front());
  size_t moved = 0;
  const std::vector<Weight> after = model->weights(), before = plain->weights();
  for (size_t i = 0; i < after.size(); ++i) {
    bool same = true;
    for (int64_t j = 0; j < after[i].value.value().size(); ++j)
      same = same && after[i].value.value()[j] == before[i].value.value()[j];
    EXPECT_EQ(same, after[i].name.find("attention.projection_") == std::string::npos)
        << after[i].name;
    moved += !same;
  }
  EXPECT_EQ(moved, 4u) << "two projections in each of two layers";
}

// The first step of a training sees the fitted weights, and its data are those without a fit.
TEST(MimicryFit, GoesBeforeTheTraining) {
  const TrainResult plain = train(mimicking(0)), fitted = train(mimicking(5)),
                    again = train(mimicking(5));
  EXPECT_TRUE(plain.mimicry_losses.empty());
  EXPECT_EQ(fitted.mimicry_losses.size(), 5u);
  EXPECT_GT(fitted.mimicry_s, 0);
  EXPECT_EQ(fitted.steps, plain.steps);
  EXPECT_NE(fitted.final_train_loss, plain.final_train_loss);
  EXPECT_EQ(fitted.final_train_loss, again.final_train_loss);
  EXPECT_EQ(fitted.mimicry_losses, again.mimicry_losses);
}

TEST(MimicryFit, AStackFitsTheLayersThatCan) {
  const VariantInfo stack =
      stack_of({layer_of(find_variant("full"), {}), layer_of(find_variant("hedgehog"), {})});
  EXPECT_TRUE(stack.traits.mimicry);
  EXPECT_FALSE(stack.traits.distance_bias);
  TrainRequest asked = mimicking(2);
  asked.variant = &stack;
  EXPECT_EQ(train(asked).mimicry_losses.size(), 2u);
}

// An indexer's weights have no gradient in a training, and move by its own loss alone.
TEST(MimicryFit, MovesWeightsThatATrainingDoesNotLearn) {
  const TrainRequest asked = mimicking(40, "dsa");
  const auto task = asked.task->build({});
  MimicryFit fit;
  const auto model = make_learner(spec_of(asked, *task, fit.watch()));
  ASSERT_TRUE(fit.run(*model, *task, asked.training, asked.seed));
  EXPECT_LT(fit.losses().back(), fit.losses().front());
}

// The second stage: in a training the indexer's weights move by a loss of their own where
// mimicry_until=end asks for it, the same way again, and stay where it does not.
TEST(MimicryFit, GoesOnInATrainingWhereItIsAskedTo) {
  const auto after = [](const std::string& until, int64_t steps) {
    TrainRequest asked = mimicking(3, "dsa");
    asked.task_params = {{"causal", true}};
    asked.variant_params = {{"keys", int64_t{2}}};
    std::map<std::string, ParamValue> settings = asked.training.values();
    settings[kMimicryUntil] = until;
    settings["steps"] = settings["eval_every"] = steps;
    asked.training = Params("training", training_params(), settings);
    return moved_after(asked);
  };
  const auto fitted = after("start", 2), still = after("start", 6), moved = after("end", 6),
             again = after("end", 6);
  ASSERT_EQ(moved.size(), fitted.size());
  ASSERT_FALSE(moved.empty());
  for (size_t i = 0; i < moved.size(); ++i) {
    expect_same(fitted[i], still[i]);
    expect_same(moved[i], again[i]);
    EXPECT_GT(farthest(moved[i], still[i]), 1e-5);
  }
  // Feature maps are learned by the training itself.
  std::map<std::string, ParamValue> settings = mimicking(3).training.values();
  settings[kMimicryUntil] = std::string("end");
  const Params training("training", training_params(), settings);
  const auto why = why_no_mimicry(find_variant("hedgehog"), {}, training);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("mimicry_until=end"), std::string::npos) << *why;
  EXPECT_FALSE(why_no_mimicry(find_variant("dsa"), {}, training));
  EXPECT_FALSE(why_no_mimicry(find_variant("full+dsa"), {}, training));
}

// Weights whose names hold "centroids", of the model that a training ends with.
std::vector<Tensor> centroids_after(std::map<std::string, ParamValue> params, int64_t steps) {
  TrainRequest asked = mimicking(0, "routing");
  params["assignment"] = std::string("nearest");
  asked.variant_params = std::move(params);
  asked.training = Params("training", training_params(),
                          {{"width", int64_t{16}},
                           {"feed_forward", int64_t{8}},
                           {"steps", steps},
                           {"batch", int64_t{8}},
                           {"eval_every", steps},
                           {"validation_examples", int64_t{16}},
                           {"test_examples", int64_t{16}}});
  return moved_after(asked);
}

TEST(Followers, CentroidsMoveInATrainingAndTheSameWayAgain) {
  const auto still = centroids_after({{"centroid_decay", 1.0}}, 4),
             moved = centroids_after({{"centroid_decay", 0.5}}, 4),
             again = centroids_after({{"centroid_decay", 0.5}}, 4);
  ASSERT_EQ(still.size(), 2u) << "one in each of two layers";
  for (size_t i = 0; i < still.size(); ++i) {
    EXPECT_GT(farthest(moved[i], still[i]), 0.01);
    expect_same(moved[i], again[i]);
  }
}

TEST(MimicryFit, OthersSayWhyNot) {
  const auto why = why_no_mimicry(find_variant("full"), {}, mimicking(7).training);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("full"), std::string::npos);
  EXPECT_NE(why->find("mimicry=7"), std::string::npos);
  EXPECT_FALSE(why_no_mimicry(find_variant("full"), {}, mimicking(0).training));
  EXPECT_FALSE(why_no_mimicry(find_variant("hedgehog"), {}, mimicking(7).training));
  // An indexer that is none has nothing to fit; a stack has what one of its layers has.
  const Params training = mimicking(7).training;
  const auto plain =
      why_no_mimicry(find_variant("dsa"), {{"scorer", std::string("plain")}}, training);
  ASSERT_TRUE(plain);
  EXPECT_NE(plain->find("with its parameters"), std::string::npos) << *plain;
  EXPECT_FALSE(why_no_mimicry(find_variant("dsa"), {}, training));
  EXPECT_FALSE(why_no_mimicry(find_variant("full+dsa"), {}, training));
  EXPECT_TRUE(why_no_mimicry(find_variant("full+dsa[scorer=plain]"), {}, training));
  EXPECT_TRUE(why_no_mimicry(find_variant("hedgehog+dsa[scorer=plain]"), {}, training));
  EXPECT_THROW(train(mimicking(7, "full")), Error);
}

// Learned weights scored with other parameters of the variant: the same weights, or why they do not
// fit.

using Given = std::map<std::string, ParamValue>;

// Softmax attention on logits of another scale, which is no weight; `gain` adds one, as long as
// it says.
class Scaled final : public Attention {
 public:
  explicit Scaled(const AttentionConfig& config) : Attention(config) {
    if (params().integer("gain") > 0) weight("gain", Tensor::full({params().integer("gain")}, 1));
    ATTN_CHECK(params().number("times") < 100, "times {} is too large", params().number("times"));
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var logits = scale(matmul(q, k, false, true), params().number("times"));
    return matmul(softmax(add(logits, Var(toy::visible(logits.shape(), mask)))), v);
  }
  Cost do_cost(const AttentionShape&) const override { return {}; }
};

VariantInfo scaled() {
  VariantInfo info = toy::variant<Scaled>("scaled");
  info.params = {{"times", 1.0, "of the logits", 0, 1e3}, {"gain", 0, "entries of a weight", 0, 9}};
  return info;
}

TrainResult trained(double times, const std::vector<Given>& test_with, int64_t gain = 0) {
  static const VariantInfo info = scaled();
  static const TaskInfo task = toy::counting();
  const TrainRequest request = {.task = &task,
                                .task_params = {},
                                .variant = &info,
                                .variant_params = {{"times", times}, {"gain", gain}},
                                .training = Params("training", training_params(),
                                                   {{"layers", int64_t{1}},
                                                    {"width", int64_t{8}},
                                                    {"feed_forward", int64_t{8}},
                                                    {"steps", int64_t{30}},
                                                    {"warmup", int64_t{3}},
                                                    {"eval_every", int64_t{10}},
                                                    {"learning_rate", 0.03},
                                                    {"batch", int64_t{16}},
                                                    {"validation_examples", int64_t{32}},
                                                    {"test_examples", int64_t{200}}}),
                                .seed = 1,
                                .test_with = test_with,
                                .shortcuts = false};
  return train(request);
}

// A training does not know with what else it is scored, and the same parameters give its score.
TEST(Rebuilt, TheSameParametersGiveTheScoreOfTheTraining) {
  const TrainResult plain = trained(1, {});
  const TrainResult found = trained(1, {{{"times", 1.0}, {"gain", int64_t{0}}}});
  EXPECT_TRUE(plain.by_params.empty());
  ASSERT_EQ(found.by_params.size(), 1U);
  ASSERT_TRUE(found.by_params[0].score) << found.by_params[0].reason;
  EXPECT_EQ(found.test, plain.test);
  EXPECT_EQ(found.by_params[0].score->value, found.test);
  EXPECT_EQ(found.by_params[0].score->each, [&] {
    return trained(1, {{{"times", 1.0}, {"gain", int64_t{0}}}}).by_params[0].score->each;
  }());
  EXPECT_NE(found.test, trained(0, {}).test) << "the scores tell nothing apart";
}

// Weights of a training with logits times 1, scored with logits times 50: other answers than
// either training's own, in the order that was asked for.
TEST(Rebuilt, OtherParametersScoreTheLearnedWeights) {
  const Given sharp = {{"times", 50.0}, {"gain", int64_t{0}}},
              same = {{"times", 1.0}, {"gain", int64_t{0}}};
  const TrainResult found = trained(1, {sharp, same});
  ASSERT_EQ(found.by_params.size(), 2U);
  ASSERT_TRUE(found.by_params[0].score && found.by_params[1].score);
  EXPECT_EQ(found.by_params[0].params, sharp);
  EXPECT_EQ(found.by_params[1].score->value, found.test);
  EXPECT_NE(found.by_params[0].score->each, found.by_params[1].score->each);
}

TEST(Rebuilt, WeightsThatDoNotFitHaveAReason) {
  const auto reason = [](int64_t gain, double times, int64_t own = 2) {
    const TrainResult found = trained(1, {{{"times", times}, {"gain", gain}}}, own);
    EXPECT_FALSE(found.by_params.at(0).score);
    return found.by_params.at(0).reason;
  };
  EXPECT_TRUE(says(reason(3, 1), "gain is [3] there, [2] in training"));
  EXPECT_TRUE(says(reason(0, 1), "learned weights there"));
  EXPECT_TRUE(says(reason(2, 200), "times 200 is too large"));
}

}  // namespace
}  // namespace attn::captured_test
