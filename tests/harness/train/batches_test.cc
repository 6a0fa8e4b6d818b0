// Mini-batches: padding, labels that are not scored, the order of the stream, its cache and its
// background thread.
#include "harness/train/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/harness/train/toy.h"
#include "tests/tasks/stored.h"

namespace attn::batches_test {
namespace {

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

}  // namespace
}  // namespace attn::batches_test
