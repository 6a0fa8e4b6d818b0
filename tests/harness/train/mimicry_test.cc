// The fit before a training: whom it moves, what it lowers, and that a training without it is as
// before.
#include "harness/train/mimicry.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "harness/train/train.h"
#include "tests/harness/train/toy.h"
#include "variants/api/stack.h"
#include "variants/catalog.h"

namespace attn::mimicry_fit_test {
namespace {

const TaskInfo& counting() {
  static const TaskInfo info = toy::counting();
  return info;
}

TrainRequest request(int64_t mimicry, const char* variant = "hedgehog") {
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

TEST(MimicryFit, MovesTheVariantsOwnWeightsAndNoOthers) {
  const TrainRequest asked = request(60);
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
  const TrainResult plain = train(request(0)), fitted = train(request(5)),
                    again = train(request(5));
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
  TrainRequest asked = request(2);
  asked.variant = &stack;
  EXPECT_EQ(train(asked).mimicry_losses.size(), 2u);
}

TEST(MimicryFit, OthersSayWhyNot) {
  const auto why = why_no_mimicry(find_variant("full"), request(7).training);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("full"), std::string::npos);
  EXPECT_NE(why->find("mimicry=7"), std::string::npos);
  EXPECT_FALSE(why_no_mimicry(find_variant("full"), request(0).training));
  EXPECT_FALSE(why_no_mimicry(find_variant("hedgehog"), request(7).training));
  EXPECT_THROW(train(request(7, "full")), Error);
}

}  // namespace
}  // namespace attn::mimicry_fit_test
