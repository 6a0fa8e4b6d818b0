// Batches of examples, and of pairs of examples.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "harness/train/batches.h"
#include "harness/train/settings.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"
#include "tests/tasks/stored.h"

namespace attn::batches_test {
namespace {

// Mini-batches: padding, labels that are not scored, the order of the stream, its cache and its
// background thread.

std::unique_ptr<Task> counting(int64_t train_examples) {
  const TaskInfo info = toy::counting();
  return info.build({{"train_examples", train_examples}});
}

std::vector<int32_t> row_of(const Batch& batch, int64_t row) {
  const auto begin = batch.tokens.begin() + row * batch.length;
  return {begin, begin + batch.length};
}

TEST(SplitBatches, PadAtTheEndAndCountEveryExampleOnce) {
  const auto task = counting(8);
  const auto batches = split_batches(*task, 3, Split::validation, 70, 32);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[2].size, 6);
  for (int64_t i = 0; i < 70; ++i) {
    const Batch& batch = batches[static_cast<size_t>(i / 32)];
    const Example example = task->example(3, Split::validation, i);
    std::vector<int32_t> padded = example.tokens;
    padded.resize(8, kPadToken);
    EXPECT_EQ(row_of(batch, i % 32), padded);
    EXPECT_EQ(batch.targets[static_cast<size_t>(i % 32)], example.target[0]);
    EXPECT_EQ(batch.lengths[static_cast<size_t>(i % 32)],
              static_cast<int64_t>(example.tokens.size()));
  }
}

// A label at every second position, sequences of three or (all_full) five real values.
class Labels final : public Task {
 public:
  explicit Labels(bool all_full)
      : Task(Params()),
        all_full_(all_full),
        source_([this](Split, int64_t index) { return stored(index); }) {}

 private:
  Example do_example(Rng&) const override { return {}; }
  const Source* do_source() const override { return &source_; }
  Example stored(int64_t index) const {
    Example example;
    example.values.assign(all_full_ ? 5 : 3, static_cast<float>(index));
    for (size_t i = 0; i < example.values.size(); ++i)
      example.target.push_back(i % 2 ? 1 : kIgnoredLabel);
    if (!all_full_) example.target.resize(5, kIgnoredLabel);
    if (index == 1) example.distances = {-1, 7, -1, -1, -1};  // of the first one nothing is known
    return example;
  }
  TaskShape do_shape() const override { return {.length = 5, .classes = 2, .per_token = true}; }
  double do_chance() const override { return 0.5; }
  std::vector<Shortcut> do_shortcuts(const std::vector<Example>&,
                                     const std::vector<Example>&) const override {
    return {};
  }
  std::string do_draw(const Example&) const override { return ""; }
  bool all_full_;
  Stored source_;
};

TEST(SplitBatches, KeepRealValuesAndLabelsPerPosition) {
  const auto batches = split_batches(Labels(false), 0, Split::test, 2, 2);
  EXPECT_EQ(batches[0].values, (std::vector<float>{0, 0, 0, 0, 0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(batches[0].targets, (std::vector<int32_t>{-1, 1, -1, -1, -1, -1, 1, -1, -1, -1}));
  EXPECT_EQ(batches[0].lengths, (std::vector<int64_t>{3, 3}));
  EXPECT_TRUE(batches[0].tokens.empty());
  EXPECT_EQ(batches[0].distances, (std::vector<int32_t>{-1, -1, -1, -1, -1, -1, 7, -1, -1, -1}));
  EXPECT_TRUE(split_batches(Labels(true), 0, Split::test, 2, 2)[0].lengths.empty())
      << "all full: no lengths";
}

using Rows = std::vector<std::pair<std::vector<int32_t>, int32_t>>;

Rows stream_rows(const Task& task, uint64_t seed, int64_t batch, int batches,
                 TrainingStream::Options options, bool slow_reader = false) {
  TrainingStream stream(task, seed, batch, options);
  Rows rows;
  for (int i = 0; i < batches; ++i) {
    const Batch& got = stream.next();
    if (slow_reader) std::this_thread::sleep_for(std::chrono::milliseconds(i % 3));
    for (int64_t row = 0; row < got.size; ++row)
      rows.push_back({row_of(got, row), got.targets[static_cast<size_t>(row)]});
  }
  return rows;
}

TEST(TrainingStream, IsTheSameInTheForegroundTheBackgroundAndWithoutACache) {
  const auto task = counting(50);
  const Rows rows = stream_rows(*task, 7, 8, 30, {.background = false});
  EXPECT_EQ(rows, stream_rows(*task, 7, 8, 30, {.background = true}));
  EXPECT_EQ(rows, stream_rows(*task, 7, 8, 30, {.background = true}, true));
  EXPECT_EQ(rows, stream_rows(*task, 7, 8, 30, {.background = true, .cache_bytes = 0}));
  EXPECT_NE(rows, stream_rows(*task, 8, 8, 30, {.background = false}));
}

TEST(TrainingStream, VisitsEveryExampleOnceAnEpochInANewOrder) {
  const auto task = counting(50);
  toy::log().asked[0].clear();
  stream_rows(*task, 7, 10, 10, {.background = false, .cache_bytes = 0});
  const std::vector<int64_t>& asked = toy::log().asked[0];
  ASSERT_EQ(asked.size(), 100u);
  const std::vector<int64_t> first(asked.begin(), asked.begin() + 50),
      second(asked.begin() + 50, asked.end());
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 50u);
  EXPECT_EQ(std::set<int64_t>(second.begin(), second.end()).size(), 50u);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
}

TEST(TrainingStream, MakesEachExampleOnceWhenTheyFitTheCache) {
  const auto task = counting(50);
  toy::log().asked[0].clear();
  stream_rows(*task, 7, 8, 30, {.background = false});
  EXPECT_EQ(toy::log().asked[0].size(), 50u);
}

TEST(TrainingStream, RethrowsWhatTheTaskThrewToTheReader) {
  const auto task = counting(50);
  toy::log().fail_at = 20;
  const auto drain = [&](bool background) {
    stream_rows(*task, 7, 8, 30, {.background = background});
  };
  EXPECT_THROW(drain(true), Error);
  EXPECT_THROW(drain(false), Error);
  toy::log().fail_at = -1;
}

TEST(TrainingStream, StopsWhileBatchesWait) {
  const auto task = counting(50);
  for (int i = 0; i < 20; ++i) TrainingStream(*task, 7, 8).next();
}

// Batches of pairs: both documents of an example one after the other, padded, from files and from
// the cache alike.

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
}  // namespace attn::batches_test
