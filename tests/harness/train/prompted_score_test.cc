// Learned weights scored behind a prompt: what has a score then, that the steps are the forward
// pass where nothing is forgotten, and that no label of the prompt is scored.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "harness/train/cached_score.h"
#include "harness/train/learner.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"
#include "tests/said.h"
#include "variants/catalog.h"

namespace attn::prompted_score_test {
namespace {

using Given = std::map<std::string, ParamValue>;

constexpr int64_t kClasses = 8, kLength = 40, kLabelled = 24;

// The token 20 positions back, from position kLabelled on: what a label reads stands in the prompt,
// or does not. Of one example, number `early`, position 9 has a label too. Scored in bits, which
// any other choice of positions changes.
TaskInfo far_echo(int64_t early = -1) {
  constexpr int64_t kBack = 20;
  TaskInfo info;
  info.name = "far_echo";
  info.make = [early](const Params&) -> std::unique_ptr<Task> {
    return std::make_unique<toy::Made>(
        TaskShape{.length = kLength,
                  .vocab = kClasses,
                  .classes = kClasses,
                  .per_token = true,
                  .causal = true,
                  .bits = true},
        [early](Split split, int64_t index) {
          Rng random = rng(1, to_string(split), static_cast<uint64_t>(index));
          Example example;
          for (int64_t i = 0; i < kLength; ++i) {
            const bool is_labelled = i >= kLabelled || (index == early && i == 9);
            example.tokens.push_back(static_cast<int32_t>(random.between(1, kClasses - 1)));
            example.target.push_back(
                is_labelled ? example.tokens[static_cast<size_t>(std::max<int64_t>(0, i - kBack))]
                            : kIgnoredLabel);
          }
          return example;
        },
        64);
  };
  return info;
}

Given behind(int64_t prompt, Given params = {}) {
  params["prompt"] = prompt;
  return params;
}
Given forgetting(const std::string& method, double budget = 4) {
  return {{"evict", method}, {"budget", budget}};
}
Given at_its_end(const std::string& method, double budget = 4) {
  Given params = forgetting(method, budget);
  params["when"] = std::string("prompt");
  return params;
}

TrainResult trained(const std::vector<Given>& test_with, const std::string& variant = "full",
                    Given training = {}, int64_t early = -1) {
  const TaskInfo task = far_echo(early);
  for (const auto& [name, value] : Given{{"layers", int64_t{2}},
                                         {"width", int64_t{32}},
                                         {"heads", int64_t{2}},
                                         {"steps", int64_t{40}},
                                         {"warmup", int64_t{5}},
                                         {"eval_every", int64_t{20}},
                                         {"learning_rate", 0.01},
                                         {"batch", int64_t{16}},
                                         {"validation_examples", int64_t{8}},
                                         {"test_examples", int64_t{24}}})
    training.try_emplace(name, value);
  return train({.task = &task,
                .task_params = {},
                .variant = &find_variant(variant),
                .variant_params = {},
                .training = Params("training", training_params(), training),
                .seed = 1,
                .test_with = test_with,
                .shortcuts = false});
}

double score_of(const TrainResult& found, size_t i) {
  const ParamsScore& with = found.by_params.at(i);
  EXPECT_TRUE(with.score) << i << ": " << with.reason;
  return with.score ? with.score->value : 0;
}

// Bits of a label in float32 differ in the sixth place.
constexpr double kRounding = 1e-5;

TEST(PromptedScore, OfACacheOfAllIsThatOfTheForwardPass) {
  for (const char* variant : {"full", "truncated", "fox", "full+truncated"}) {
    const TrainResult found = trained({behind(1), behind(kLabelled)}, variant);
    for (size_t i = 0; i < 2; ++i)
      EXPECT_NEAR(score_of(found, i), found.test, kRounding) << variant;
  }
  const TrainResult shared = trained({behind(kLabelled), behind(kLabelled, forgetting("h2o", 40))},
                                     "full", {{"kv_heads", int64_t{1}}});
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(score_of(shared, i), shared.test, kRounding) << i;
}

TEST(PromptedScore, IsOfWhatForgetsAtTheEndOfAPromptAlone) {
  const std::vector<Given> asked = {
      behind(kLabelled, forgetting("snapkv")),    behind(kLabelled, at_its_end("h2o")),
      behind(kLabelled, at_its_end("recent")),    behind(kLabelled, at_its_end("norm")),
      behind(kLabelled, forgetting("recent")),    behind(12, at_its_end("recent")),
      behind(kLabelled, forgetting("snapkv", 24))};
  const TrainResult found = trained(asked);
  for (size_t i = 0; i + 1 < asked.size(); ++i) {
    EXPECT_EQ(found.by_params.at(i).params, asked[i]) << "as it was asked for";
    EXPECT_GT(std::abs(score_of(found, i) - found.test), 10 * kRounding) << i;
    for (size_t other = 0; other < i; ++other)
      EXPECT_NE(score_of(found, i), score_of(found, other)) << i << " and " << other;
  }
  EXPECT_NEAR(score_of(found, asked.size() - 1), found.test, kRounding) << "all of the prompt";
}

TEST(PromptedScore, IsOfCachesOfFewerBitsAndOfPagesToo) {
  const TrainResult found =
      trained({behind(kLabelled, {{"kv_dtype", std::string("bfloat16")}}),
               behind(kLabelled, {{"kv_dtype", std::string("float32")}}),
               behind(kLabelled, forgetting("quest", 16)), forgetting("quest", 16)});
  EXPECT_GT(std::abs(score_of(found, 0) - found.test), 1e-7);
  EXPECT_NEAR(score_of(found, 0), found.test, 0.01);
  EXPECT_NEAR(score_of(found, 1), found.test, kRounding);
  // No layer reads other pages in its prompt, which the forward pass answers.
  EXPECT_NE(score_of(found, 2), score_of(found, 3));
}

TEST(PromptedScore, HasNoLabelOfThePrompt) {
  const TrainResult found = trained({behind(kLabelled), behind(kLabelled + 1),
                                     behind(kLength - 1, forgetting("snapkv")), forgetting("h2o")});
  EXPECT_TRUE(found.by_params.at(0).score);
  EXPECT_EQ(found.by_params.at(1).reason,
            "a score is of labels behind the prompt, and the first stands at position 24, counted "
            "from 0, inside prompt=25; at most prompt=24");
  EXPECT_TRUE(says(found.by_params.at(2).reason, "inside prompt=39; at most prompt=24"));
  for (const size_t i : {1, 2}) {
    EXPECT_FALSE(found.by_params[i].score) << i;
    EXPECT_FALSE(found.by_params[i].state_bytes) << i;
  }
  EXPECT_TRUE(found.by_params.at(3).score) << "one entry is refused, not the others";
  // Any scored example counts: here the last, in the second batch.
  const TrainResult one = trained({behind(kLabelled), behind(9)}, "full", {}, 23);
  EXPECT_FALSE(one.by_params.at(0).score);
  EXPECT_TRUE(says(one.by_params[0].reason, "position 9, counted from 0, inside prompt=24"));
  EXPECT_TRUE(one.by_params.at(1).score) << one.by_params[1].reason;
  const TrainResult beyond = trained({behind(kLabelled)}, "full", {}, 24);
  EXPECT_TRUE(beyond.by_params.at(0).score) << "that example is not scored";
}

TEST(PromptedScore, WithoutAPromptThereIsNoneAndTheReasonNamesIt) {
  const TrainResult found = trained({forgetting("snapkv"), at_its_end("h2o")});
  for (const ParamsScore& with : found.by_params) {
    EXPECT_FALSE(with.score);
    EXPECT_EQ(with.reason,
              "a score takes every position as a step, and this decoder forgets at the end of a "
              "prompt alone; --test-with 'prompt=N' scores behind one");
  }
}

TEST(PromptedScore, LeavesTheOtherScoresAsTheyWere) {
  const Given sharp = forgetting("h2o"), typed = {{"kv_dtype", std::string("int4")}};
  const TrainResult plain = trained({sharp, typed}),
                    found = trained({behind(kLabelled, forgetting("snapkv")), sharp, typed});
  EXPECT_EQ(found.test, plain.test);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(score_of(found, i + 1), score_of(plain, i)) << i;
    EXPECT_EQ(found.by_params[i + 1].state_bytes, plain.by_params[i].state_bytes) << i;
  }
}

// Four positions of the prompt, and a slot for each step: 4 bytes say where a position stood.
TEST(PromptedScore, TellsTheBytesOfTheState) {
  constexpr int64_t kHeads = 2, kLayers = 2, kDim = 16;
  const TrainResult found =
      trained({behind(kLabelled, forgetting("snapkv")), behind(10, forgetting("snapkv")),
               behind(kLabelled), behind(kLabelled, forgetting("recent")), forgetting("recent")});
  const auto bytes_of = [](int64_t slots) {
    return kLayers * kHeads * slots * (2 * kDim * int64_t{sizeof(real)} + 4);
  };
  EXPECT_EQ(found.by_params.at(0).state_bytes, bytes_of(4 + kLength - kLabelled));
  EXPECT_EQ(found.by_params.at(1).state_bytes, bytes_of(4 + kLength - 10));
  EXPECT_EQ(found.by_params.at(2).state_bytes, found.state_bytes);
  EXPECT_EQ(found.by_params.at(3).state_bytes, bytes_of(4 + 1));
  EXPECT_EQ(found.by_params.at(4).state_bytes, bytes_of(4 + 1));
}

std::string why(const TaskShape& task, const Given& given, const std::string& variant = "full") {
  return why_no_cached_score("far_echo", task, find_variant(variant), scored_with(given),
                             Params("training", training_params(), {}))
      .value_or("");
}

TEST(PromptedScore, HasAReasonWhereThereIsNone) {
  TaskShape task = far_echo().build()->shape();
  EXPECT_EQ(why(task, behind(1)), "");
  EXPECT_EQ(why(task, behind(kLength - 1)), "");
  for (const int64_t prompt : {kLength, 2 * kLength})
    EXPECT_EQ(why(task, behind(prompt)),
              fmt::format("prompt={} leaves no step of the 40 positions of far_echo; expected 1 to "
                          "39",
                          prompt));
  EXPECT_TRUE(says(fault_of([] { scored_with(behind(0)); }), "prompt=0 is not valid; expected 1"));
  EXPECT_EQ(why(task, behind(8), "linear"),
            "prompt=8 is of decoders with caches of every kv_dtype, and that of linear has none");
  task.per_token = false;
  EXPECT_EQ(why(task, behind(8)),
            "prompt=8 is of tasks with a label at each position, and far_echo labels sequences");
}

TEST(PromptedScore, NoVariantHasAParameterOfItsName) {
  for (const VariantInfo& info : all_variants())
    for (const ParamSpec& spec : info.params) EXPECT_NE(spec.name, kPromptParam) << info.name;
}

}  // namespace
}  // namespace attn::prompted_score_test
