// Batches of pairs: both documents of an example one after the other, padded, from files and from
// the cache alike.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "harness/train/batches.h"
#include "harness/train/settings.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"
#include "tests/tasks/stored.h"

namespace attn::pair_batches_test {
namespace {

// Example i: one to four times the token i mod 5 + 1, then one to three times the next; label 1
// when i is even.
class Couples final : public Task {
 public:
  explicit Couples(const Params& params)
      : Task(params), source_([](Split, int64_t index) { return stored(index); }) {}

  static Example stored(int64_t index) {
    const auto i = static_cast<int32_t>(index);
    Example example;
    example.tokens.assign(static_cast<size_t>(1 + i % 4), 1 + i % 5);
    example.second.assign(static_cast<size_t>(1 + i % 3), 1 + (i + 1) % 5);
    example.target = {i % 2 ? 0 : 1};
    return example;
  }

 private:
  Example do_example(Rng&) const override { return {}; }
  const Source* do_source() const override { return &source_; }
  TaskShape do_shape() const override {
    return {.length = 4, .vocab = 6, .classes = 2, .pairs = true};
  }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }

  Stored source_;
};

TaskInfo couples() {
  TaskInfo info;
  info.name = "couples";
  info.params = {{"train_examples", 24, "finite"}};
  info.make = make_task<Couples>;
  return info;
}

// Row `row` of `batch` holds example `index`.
void expect_row(const Batch& batch, int64_t row, int64_t index) {
  Example e = Couples::stored(index);
  const std::vector<int64_t> sizes = {static_cast<int64_t>(e.tokens.size()),
                                      static_cast<int64_t>(e.second.size())};
  e.tokens.resize(4, kPadToken);
  e.second.resize(4, kPadToken);
  const auto at = batch.tokens.begin() + row * 8;
  EXPECT_EQ(std::vector<int32_t>(at, at + 4), e.tokens) << index;
  EXPECT_EQ(std::vector<int32_t>(at + 4, at + 8), e.second) << index;
  EXPECT_EQ(batch.lengths.at(static_cast<size_t>(2 * row)), sizes[0]);
  EXPECT_EQ(batch.lengths.at(static_cast<size_t>(2 * row + 1)), sizes[1]);
  EXPECT_EQ(batch.targets.at(static_cast<size_t>(row)), e.target[0]);
}

TEST(PairBatches, HoldBothDocumentsOfEachExample) {
  const auto task = couples().build();
  const std::vector<Batch> batches = split_batches(*task, 0, Split::test, 7, 4);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1].size, 3);
  EXPECT_EQ(batches[1].documents, 2);
  EXPECT_EQ(batches[1].tokens.size(), 24u);
  for (int64_t i = 0; i < 7; ++i) expect_row(batches[static_cast<size_t>(i / 4)], i % 4, i);
}

TEST(PairBatches, AreTheSameFromTheCache) {
  const auto task = couples().build();
  TrainingStream cached(*task, 3, 5, {.background = false});
  TrainingStream made(*task, 3, 5, {.background = false, .cache_bytes = 0});
  for (int i = 0; i < 20; ++i) {  // four epochs
    const Batch &a = cached.next(), &b = made.next();
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.lengths, b.lengths);
    EXPECT_EQ(a.targets, b.targets);
    EXPECT_EQ(a.documents, 2);
  }
}

TEST(PairBatches, TrainAModelOfPairs) {
  const VariantInfo plain = toy::variant<toy::Plain>("plain");
  TrainRequest request;
  const TaskInfo task = couples();
  request.task = &task;
  request.variant = &plain;
  request.training = Params("training", training_params(),
                            {{"steps", int64_t{200}},
                             {"warmup", int64_t{10}},
                             {"learning_rate", 1e-2},
                             {"batch", int64_t{8}},
                             {"width", int64_t{8}},
                             {"feed_forward", int64_t{16}},
                             {"eval_every", int64_t{50}},
                             {"validation_examples", int64_t{24}},
                             {"test_examples", int64_t{24}}});
  const TrainResult result = train(request);
  EXPECT_FALSE(result.diverged);
  EXPECT_GT(result.validation, 0.7);  // 24 examples can be learned by heart
}

TEST(PairBatches, AVariantWithoutPaddingIsRefused) {
  VariantInfo plain = toy::variant<toy::Plain>("plain");
  plain.traits.padding = false;
  const auto reason = why_not_trainable("couples", *couples().build(), plain, {},
                                        Params("training", training_params()));
  ASSERT_TRUE(reason.has_value());
  EXPECT_NE(reason->find("pads"), std::string::npos) << *reason;
}

}  // namespace
}  // namespace attn::pair_batches_test
