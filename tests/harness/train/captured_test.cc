// What is captured from a model is what its attention read when the test split was scored.
#include "harness/train/captured.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/harness/train/toy.h"

namespace attn::captured_test {
namespace {

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

TrainRequest request(double learning_rate) {
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
  const TrainResult trained = train(request(0.03));
  ASSERT_GE(seen().size(), 2U);
  const std::vector<CapturedLayer> last(seen().end() - 2, seen().end());  // the test score
  const Captured found = captured(request(0.03), true, kExamples);
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
  const Captured initial = captured(request(0.03), false, 4);
  EXPECT_FALSE(initial.test);
  const Captured still = captured(request(0), true, 4), moved = captured(request(0.03), true, 4);
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

}  // namespace
}  // namespace attn::captured_test
