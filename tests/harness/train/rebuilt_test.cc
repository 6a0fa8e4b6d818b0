// Learned weights scored with other parameters of the variant: the same weights, or why they do not
// fit.
#include "harness/train/rebuilt.h"

#include <gtest/gtest.h>

#include "harness/train/train.h"
#include "tests/harness/train/toy.h"

namespace attn::rebuilt_test {
namespace {

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
  EXPECT_NE(reason(3, 1).find("gain is [3] there, [2] in training"), std::string::npos)
      << reason(3, 1);
  EXPECT_NE(reason(0, 1).find("learned weights there"), std::string::npos) << reason(0, 1);
  EXPECT_NE(reason(2, 200).find("times 200 is too large"), std::string::npos) << reason(2, 200);
}

}  // namespace
}  // namespace attn::rebuilt_test
