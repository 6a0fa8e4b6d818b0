// Learned weights scored by decoding from caches of every type: that the steps are the forward pass
// where nothing is rounded, that scores are those of the cache, and what has none.
#include "harness/train/cached_score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/train/batches.h"
#include "harness/train/learner.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"
#include "tests/said.h"
#include "variants/api/cache_type.h"
#include "variants/catalog.h"

namespace attn::cached_score_test {
namespace {

using Given = std::map<std::string, ParamValue>;

constexpr int64_t kClasses = 8;

// The token three positions back, so that attention must find one; the score is a number of bits,
// which any other rounding changes.
TaskShape shape_of(int64_t length) {
  return {.length = length,
          .vocab = kClasses,
          .classes = kClasses,
          .per_token = true,
          .causal = true,
          .bits = true};
}

TaskInfo echo(int64_t length) {
  TaskInfo info;
  info.name = "echo";
  info.make = [length](const Params&) -> std::unique_ptr<Task> {
    return std::make_unique<toy::Made>(
        shape_of(length),
        [length](Split split, int64_t index) {
          Rng random = rng(1, to_string(split), static_cast<uint64_t>(index));
          Example example;
          for (int64_t i = 0; i < length; ++i)
            example.tokens.push_back(static_cast<int32_t>(random.between(1, kClasses - 1)));
          example.target.assign(3, kIgnoredLabel);
          example.target.insert(example.target.end(), example.tokens.begin(),
                                example.tokens.end() - 3);
          return example;
        },
        64);
  };
  return info;
}

Given caching(const std::string& type, Given params = {}) {
  params["kv_dtype"] = type;
  return params;
}

TrainResult trained(int64_t length, const std::vector<Given>& test_with,
                    const std::string& variant = "full", Given training = {}) {
  const TaskInfo task = echo(length);
  for (const auto& [name, value] : Given{{"layers", int64_t{2}},
                                         {"width", int64_t{32}},
                                         {"heads", int64_t{2}},
                                         {"steps", int64_t{60}},
                                         {"warmup", int64_t{5}},
                                         {"eval_every", int64_t{30}},
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

// Logits of float32 differ in the last places, by which the bits of a label differ in the sixth.
constexpr double kRounding = 1e-5;

TEST(CachedScore, StepsFromFloat32AreTheForwardPass) {
  for (const char* variant : {"full", "truncated", "fox", "softmax_one", "full+truncated"}) {
    const TrainResult found = trained(72, {caching("float32")}, variant);
    ASSERT_TRUE(found.by_params.at(0).score) << found.by_params[0].reason;
    EXPECT_NEAR(found.by_params[0].score->value, found.test, kRounding) << variant;
    EXPECT_EQ(found.by_params[0].state_bytes, found.state_bytes) << variant;
  }
  const TrainResult shared = trained(40, {caching("float32")}, "full", {{"kv_heads", int64_t{1}}});
  EXPECT_NEAR(shared.by_params.at(0).score.value().value, shared.test, kRounding) << "one of two";
}

// Steps from the same cache give the same bits: any difference is of the type. The fewer bits, the
// further from float32; a stack has layers of two variants.
TEST(CachedScore, IsOfTheCacheThatWasAskedFor) {
  const std::vector<std::string> types = {"float32",   "bfloat16",  "int8",
                                          "int8/int4", "int4/int8", "int4"};
  std::vector<Given> asked;
  for (const std::string& type : types) asked.push_back(caching(type));
  for (const char* variant : {"full", "full+truncated"}) {
    const TrainResult found = trained(72, asked, variant);
    std::vector<double> off;
    for (size_t i = 0; i < types.size(); ++i) {
      const ParamsScore& with = found.by_params.at(i);
      ASSERT_TRUE(with.score) << types[i] << ": " << with.reason;
      EXPECT_EQ(with.params, asked[i]) << "as it was asked for";
      off.push_back(std::abs(with.score->value - found.by_params[0].score->value));
      for (size_t other = 0; other < i; ++other)
        EXPECT_NE(with.score->value, found.by_params[other].score->value)
            << variant << ", " << types[i] << " and " << types[other];
    }
    EXPECT_GT(off[5], 4 * off[2]) << variant << ", int4 beside int8";
    EXPECT_LT(off[5], 0.1) << variant << ", which is still near";
  }
}

// The newest positions stand in float32 beside integers, so that a sequence which is no longer is
// scored as without a cache of fewer bits. bfloat16 rounds all.
TEST(CachedScore, OfIntegersRoundsWhatIsOlderThanTheNewestPositions) {
  const std::vector<Given> asked = {caching("int8"), caching("int4"), caching("bfloat16")};
  const TrainResult found = trained(kRecentPositions, asked);
  const auto off = [&](size_t i) {
    return std::abs(found.by_params.at(i).score.value().value - found.test);
  };
  EXPECT_LT(off(0), kRounding);
  EXPECT_LT(off(1), kRounding);
  EXPECT_GT(off(2), 4 * std::max(off(0), off(1)));
}

// Heads of 16 channels fill half of a block of 32 that share a scale: an integer cache is padded,
// and its state told as it is.
TEST(CachedScore, TellsTheBytesOfTheState) {
  constexpr int64_t kLength = 72, kPadded = 96, kHeads = 2, kLayers = 2, kDim = 16;
  const TrainResult found = trained(kLength, {caching("bfloat16"), caching("int8")});
  const int64_t each = kLayers * kHeads * 2, whole = each * kLength * kDim * int64_t{sizeof(real)};
  EXPECT_EQ(found.state_bytes, whole);
  EXPECT_EQ(found.by_params.at(0).state_bytes, whole / 2);
  const int64_t recent = each * kRecentPositions * kDim * int64_t{sizeof(real)};
  EXPECT_EQ(found.by_params.at(1).state_bytes, each * kPadded * 34 + recent);
}

// A training is not changed by what is scored after it.
TEST(CachedScore, LeavesTheOtherScoresAsTheyWere) {
  const Given sharp = {{"evict", std::string("recent")}, {"budget", 4.0}};
  const TrainResult plain = trained(40, {sharp}), found = trained(40, {caching("int4"), sharp});
  EXPECT_EQ(found.test, plain.test);
  EXPECT_EQ(found.by_params.at(1).score.value().value, plain.by_params.at(0).score.value().value);
  EXPECT_EQ(found.by_params[1].state_bytes, plain.by_params[0].state_bytes);
  EXPECT_NE(found.by_params[0].score->value, found.by_params[1].score->value);
}

std::string why(const std::string& variant, const TaskShape& task, const Given& given,
                const Given& training = {}) {
  return why_no_cached_score("echo", task, find_variant(variant), scored_with(given),
                             Params("training", training_params(), training))
      .value_or("");
}

TEST(CachedScore, HasAReasonWhereThereIsNone) {
  const Given int8 = caching("int8");
  const TaskShape echo = shape_of(40);
  EXPECT_EQ(why("full", echo, int8), "");
  EXPECT_EQ(why("linear", echo, {}), "") << "nothing was asked for";
  EXPECT_EQ(why("linear", echo, int8), "the decoder of linear has no cache of int8");
  EXPECT_EQ(why("full+linear", echo, int8), "the decoder of full+linear has no cache of int8");
  TaskShape other = echo;
  other.causal = false;
  EXPECT_EQ(why("full", other, int8),
            "a cache of int8 is of decoding, which is causal, and echo is not");
  other.outputs = 4;
  EXPECT_EQ(why("full", other, int8),
            "echo has output sequences; a cache of int8 is of tasks with labels");
  EXPECT_EQ(why("full", echo, int8, {{"positions", std::string("alibi")}}),
            "a cache of int8 takes no bias of distances: no positions alibi");
  EXPECT_EQ(why("full", echo, caching("int8", {{"evict", std::string("h2o")}, {"budget", 8.0}})),
            "a decoder that forgets caches in float32, not in int8");
  EXPECT_TRUE(says(fault_of([] { scored_with(caching("int5")); }),
                   "kv_dtype=int5 is not valid; expected float32|bfloat16|int8|int4|"));
  const TrainResult found = trained(8, {int8}, "linear");
  EXPECT_FALSE(found.by_params.at(0).score);
  EXPECT_EQ(found.by_params[0].reason, "the decoder of linear has no cache of int8");
}

// A row's entry could not tell a parameter of that name from the cache.
TEST(CachedScore, NoVariantHasAParameterOfItsName) {
  for (const VariantInfo& info : all_variants())
    for (const ParamSpec& spec : info.params) EXPECT_NE(spec.name, kCacheParam) << info.name;
}

}  // namespace
}  // namespace attn::cached_score_test
