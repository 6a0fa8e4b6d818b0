// Scores by slice: the bins against values by hand, and those of every kind of answer against the
// score of all labels.
#include "harness/train/slices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "harness/train/batches.h"
#include "harness/train/train.h"
#include "tasks/catalog.h"
#include "tests/harness/train/toy.h"
#include "variants/catalog.h"

namespace attn::slices_test {
namespace {

using Bins = std::vector<SliceBin>;

std::vector<std::pair<double, double>> ends_of(const Bins& bins) {
  std::vector<std::pair<double, double>> ends;
  for (const SliceBin& bin : bins) ends.emplace_back(bin.from, bin.to);
  return ends;
}

// One label for each of these values, in batches of three examples; right every second time.
Bins bins_of_examples(const std::vector<double>& values) {
  std::vector<Batch> batches;
  std::vector<Answer> answers;
  for (size_t i = 0; i < values.size(); i++) {
    if (i % 3 == 0) batches.push_back({.size = 0, .length = 1});
    batches.back().size++;
    batches.back().slices["value"].push_back(values[i]);
    answers.push_back({.sequence = static_cast<int64_t>(i), .score = i % 2 ? 1.0 : 0.0});
  }
  return slice_bins(answers, batches);
}

TEST(Slices, FewValuesHaveABinEach) {
  const Bins bins = bins_of_examples({2, 1, 2, 7, 2, 1, 0.5});
  EXPECT_EQ(ends_of(bins),
            (std::vector<std::pair<double, double>>{{0.5, 0.5}, {1, 1}, {2, 2}, {7, 7}}));
  EXPECT_EQ(bins[2].name, "value");
  EXPECT_EQ(bins[2].labels, 3);
  EXPECT_EQ(bins[2].sequences, 3);
  EXPECT_EQ(bins[2].score, 0) << "examples 0, 2 and 4";
  EXPECT_DOUBLE_EQ(bins[1].score, 1);
  EXPECT_DOUBLE_EQ(bins[3].score, 1);
}

TEST(Slices, ManyValuesShareABinFromAPowerOfTwoToTheNext) {
  const Bins bins = bins_of_examples({15, 8, 0, 4, 7, 1, 2, 3, 0.75, 0.5, -2, -3, -4, 16, 0});
  EXPECT_EQ(
      ends_of(bins),
      (std::vector<std::pair<double, double>>{
          {-4, -4}, {-3, -2}, {0, 0}, {0.5, 0.75}, {1, 1}, {2, 3}, {4, 7}, {8, 15}, {16, 16}}));
  EXPECT_EQ(bins[2].labels, 2);
  int64_t labels = 0;
  for (const SliceBin& bin : bins) labels += bin.labels;
  EXPECT_EQ(labels, 15);
}

// Three sequences of three places, of which five have a label: scores and groups by hand.
TEST(Slices, LabelsOfOneExampleMayDiffer) {
  const std::vector<Batch> batches = {{.size = 2,
                                       .length = 3,
                                       .slices = {{"hops", {1, 2}}},
                                       .label_slices = {{"repeats", {1, 0, -1, 1, -1, -1}}}},
                                      {.size = 1,
                                       .length = 3,
                                       .slices = {{"hops", {1}}},
                                       .label_slices = {{"repeats", {-1, 0, 0}}}}};
  const std::vector<Answer> answers = {
      {0, -1, 1.0, 0}, {0, -1, 0.0, 1}, {1, -1, 0.5, 0}, {2, -1, 3.0, 1}, {2, -1, 2.0, 2}};
  const Bins bins = slice_bins(answers, batches);
  ASSERT_EQ(bins.size(), 4u);
  EXPECT_EQ(bins[0].name, "hops");
  EXPECT_EQ(bins[0].labels, 4);
  EXPECT_EQ(bins[0].sequences, 2);
  EXPECT_DOUBLE_EQ(bins[0].score, 6.0 / 4);
  EXPECT_DOUBLE_EQ(bins[1].score, 0.5);
  EXPECT_EQ(bins[2].name, "repeats");
  EXPECT_EQ(bins[2].from, 0);
  EXPECT_EQ(bins[2].labels, 3);
  EXPECT_DOUBLE_EQ(bins[2].score, 5.0 / 3);
  // Residuals of the two sequences that have such labels, 0 - 5/3 and 5 - 10/3, over three.
  EXPECT_DOUBLE_EQ(bins[2].standard_error, std::sqrt(2 * 25.0 / 9 * 3 / 2) / 3);
  EXPECT_EQ(bins[3].from, 1);
  EXPECT_EQ(bins[3].sequences, 2);
  EXPECT_DOUBLE_EQ(bins[3].score, 0.75);
}

TEST(Slices, WhereNoneIsNamedThereAreNoBins) {
  EXPECT_TRUE(slice_bins({{0, -1, 1.0, 0}}, {{.size = 1, .length = 1}}).empty());
  EXPECT_TRUE(slice_bins({}, {}).empty());
  const std::vector<Batch> some = {{.size = 1, .length = 1},
                                   {.size = 1, .length = 1, .slices = {{"depth", {3}}}}};
  const Bins bins = slice_bins({{0, -1, 0.0, 0}, {1, -1, 1.0, 0}}, some);
  ASSERT_EQ(bins.size(), 1u) << "an example without the slice is in no bin";
  EXPECT_EQ(bins[0].score, 1);
}

TEST(SliceBatches, TheTestSplitAloneHoldsThem) {
  const auto task = find_task("mqar").build({{"preset", std::string("updates")}});
  const Batch batch = batch_of(*task, 3, Split::test, 5, 2);
  const Example second = task->example(3, Split::test, 6);
  EXPECT_EQ(batch.slices.at("mean_later").at(1), second.slices.at("mean_later"));
  const std::vector<int32_t>& later = batch.label_slices.at("later");
  ASSERT_EQ(std::ssize(later), 2 * batch.length);
  EXPECT_TRUE(std::equal(later.begin() + batch.length, later.end(),
                         second.label_slices.at("later").begin()));
  EXPECT_TRUE(batch_of(*task, 3, Split::validation, 0, 2).slices.empty());
  EXPECT_TRUE(batch_of(*task, 3, Split::validation, 0, 2).label_slices.empty());
}

struct Trained {
  const char *task, *preset;
  std::vector<const char*> slices;
};
void PrintTo(const Trained& trained, std::ostream* out) { *out << trained.task; }

class EveryAnswer : public testing::TestWithParam<Trained> {};

// Each slice parts all labels, so that the mean over its bins is the score: of labels, of bits, of
// numbers and of output sequences.
TEST_P(EveryAnswer, BinsAddUpToTheScore) {
  const TaskInfo& task = find_task(GetParam().task);
  const std::map<std::string, ParamValue> training = {
      {"steps", int64_t{3}},          {"eval_every", int64_t{3}},
      {"warmup", int64_t{1}},         {"batch", int64_t{4}},
      {"layers", int64_t{1}},         {"width", int64_t{8}},
      {"feed_forward", int64_t{8}},   {"heads", int64_t{1}},
      {"test_examples", int64_t{10}}, {"validation_examples", int64_t{4}}};
  const TrainResult result =
      train({.task = &task,
             .task_params = task.resolve({{"preset", std::string(GetParam().preset)}}).values(),
             .variant = &find_variant("full"),
             .variant_params = {},
             .training = Params("training", training_params(), training),
             .seed = 5,
             .exact = &find_variant("full"),
             .shortcuts = false});
  std::map<std::string, std::pair<double, int64_t>> sums;
  std::vector<std::string> names;
  for (const SliceBin& bin : result.by_slice) {
    auto& [sum, labels] = sums[bin.name];
    if (labels == 0) names.push_back(bin.name);
    sum += bin.score * static_cast<double>(bin.labels);
    labels += bin.labels;
    EXPECT_LE(bin.sequences, std::min<int64_t>(10, bin.labels));
  }
  EXPECT_EQ(names, std::vector<std::string>(GetParam().slices.begin(), GetParam().slices.end()));
  for (const auto& [name, sum] : sums)
    EXPECT_NEAR(sum.first / static_cast<double>(sum.second), result.test, 1e-9) << name;
}

INSTANTIATE_TEST_SUITE_P(
    Slices, EveryAnswer,
    testing::Values(
        Trained{"mqar", "updates", {"max_gap", "mean_gap", "mean_later", "min_gap", "later"}},
        Trained{"lm", "small", {"people", "repeats"}}, Trained{"adding", "small", {"gap"}},
        Trained{"reverse", "small", {"length"}}),
    [](const auto& given) { return std::string(given.param.task); });

}  // namespace
}  // namespace attn::slices_test
