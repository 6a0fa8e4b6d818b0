// The axis packed in plans: what its words decide, one cell a list, what does not go with it, what
// is skipped, forecasts, and cells that have none. And arrivals at a workload's server.
#include <gtest/gtest.h>

#include <numeric>

#include "harness/cell/codec.h"
#include "tests/harness/plan/planned.h"

namespace attn::packings_test {
namespace {

SweepRequest packed(const std::string& word, std::map<std::string, std::string> axes = {},
                    std::string variant = "full") {
  axes["packed"] = word;
  return request_with(std::move(axes), {std::move(variant)});
}

TEST(PackedAxis, AListDecidesLengthAndBatch) {
  const Plan found = plan(packed("3q64_q5", {{"threads", "1,2"}, {"mode", "forward,train"}}));
  ASSERT_EQ(found.cells.size(), 4u);
  const Cell& cell = found.cells[0];
  EXPECT_EQ(cell.key.axes.packed, "3q64_q5");
  EXPECT_EQ(cell.key.axes.length, 64);
  EXPECT_EQ(cell.key.axes.batch, 4);
  EXPECT_EQ(cell.skip, "");
  EXPECT_GT(cell.forecast_s, 0);
  EXPECT_EQ(workload_of(cell.key).packed, (std::vector<int64_t>{64, 64, 64, 5}));
  EXPECT_EQ(
      cell.key.axes,
      row_of(to_json(Row{.key = cell.key, .result = {.status = Status::failed, .reason = "none"}}))
          .key.axes);
}

TEST(PackedAxis, DrawnLengthsAreOfBatchAndLength) {
  const Plan found = plan(packed("uniform", {{"batch", "4"}, {"length", "100"}, {"seed", "0,1"}}));
  ASSERT_EQ(found.cells.size(), 2u);
  const WorkloadSpec one = workload_of(found.cells[0].key), two = workload_of(found.cells[1].key);
  EXPECT_EQ(std::accumulate(one.packed.begin(), one.packed.end(), int64_t{0}), 250);
  EXPECT_EQ(std::accumulate(two.packed.begin(), two.packed.end(), int64_t{0}), 250);
  EXPECT_EQ(one.batch, 4);
  EXPECT_EQ(one.length, 100);
}

TEST(PackedAxis, OneListIsOneCell) {
  EXPECT_EQ(ids(packed("q1024_q8")), ids(packed("1q1k_q8")));
  EXPECT_EQ(ids(packed("q8,q9")).size(), 2u);
}

TEST(PackedAxis, LabelsNameIt) {
  EXPECT_EQ(plan(packed("q8_q9")).cells.at(0).label, "speed full packed=q8_q9");
  EXPECT_EQ(plan(packed("uniform", {{"batch", "4"}})).cells.at(0).label,
            "speed full packed=uniform");
}

TEST(PackedAxis, CellsWithoutItAreTheCellsOfBefore) {
  const std::string key = to_json(plan(request_with({}, {"full"})).cells.at(0).key).dump();
  EXPECT_FALSE(says(key, "packed"));
  EXPECT_FALSE(says(key, "arrivals"));
}

TEST(PackedAxis, APackedPassIsForecastBesideThePaddedOne) {
  const auto seconds = [](const SweepRequest& request) {
    return plan(request).cells.at(0).forecast_s;
  };
  const std::map<std::string, std::string> shape = {{"batch", "8"}, {"length", "4096"}};
  auto with = shape;
  EXPECT_GT(seconds(packed("uniform", with)), seconds(request_with(shape, {"full"})));
  const std::map<std::string, std::string> small = {{"batch", "2"}, {"length", "8"}};
  EXPECT_GT(seconds(packed("uniform", small)), 1.2 * seconds(request_with(small, {"full"})))
      << "each has samples";
}

TEST(PackedAxis, WhatDoesNotGoWithIt) {
  const auto refused = [](const SweepRequest& request, const std::string& said) {
    EXPECT_TRUE(says(error_of(request), said));
  };
  refused(packed("q8_q9", {{"length", "64"}}), "axis length=64 does not apply to packed q8_q9");
  refused(packed("q8_q9", {{"batch", "2"}}), "axis batch=2 does not apply to packed q8_q9");
  refused(packed("uniform"), "the batch is 1; give their number, such as --batch 8");
  refused(packed("uniform,q64", {{"batch", "4"}}),
          "--packed uniform,q64: the list q64 has lengths of its own");
  refused(packed("gamma", {{"batch", "4"}}), "expected uniform, lognormal or a list");
  refused(packed("3x64"), "packed '3x64': '3x64': it has no length; expected such as 8q64_q2k");
  refused(packed("q0"), "packed 'q0': 'q0': a length is 1 to 4194304, not 0");
  refused(packed("4096q1_q1"), "packed '4096q1_q1' has 4097 sequences");
  refused(packed("q8_q1kv9"), "leave out kv9");
  refused(packed("q8", {{"measure", "memory"}}), "does not apply to measure memory");
  refused(packed("q8", {{"workload", "q8"}}), "are both given");
  SweepRequest broken_down = packed("q8");
  broken_down.breakdown = true;
  refused(broken_down, "--breakdown is of one pass");
  SweepRequest tokens = packed("q8");
  tokens.tokens = 1024;
  refused(tokens, "--tokens 1024 does not apply to packed q8");
  SweepRequest lone = packed("uniform", {{"length", "64,1024"}});
  lone.tokens = 1024;
  refused(lone, "--tokens 1024 is one sequence of length 1024");
}

TEST(PackedAxis, WhatCannotBePackedIsSkipped) {
  const auto reason = [](const SweepRequest& request) { return plan(request).cells.at(0).skip; };
  EXPECT_TRUE(says(reason(packed("q8", {{"dtype", "bfloat16"}})), "float32"));
  EXPECT_TRUE(says(reason(packed("q8", {{"scope", "layer"}})), "scope attention"));
  EXPECT_TRUE(says(reason(packed("q8", {{"causal", "true"}}, "linformer")), "cannot be causal"));
  EXPECT_EQ(reason(packed("q8", {{"kv_heads", "2"}})), "");
}

TEST(Arrivals, AreOfAWorkload) {
  const auto arriving = [](const std::string& word, std::map<std::string, std::string> axes) {
    if (!word.empty()) axes["workload"] = word;
    return request_with(std::move(axes), {"full"});
  };
  const Plan found = plan(arriving("2q8_q1kv9", {{"arrivals", "5,10.5"}}));
  ASSERT_EQ(found.cells.size(), 2u);
  EXPECT_EQ(found.cells[1].key.axes.arrivals, 10.5);
  EXPECT_GT(found.cells[0].forecast_s, plan(arriving("2q8_q1kv9", {})).cells.at(0).forecast_s);
  EXPECT_TRUE(says(error_of(arriving("q8", {{"arrivals", "0"}})), "arrivals=0 is not valid"));
  EXPECT_TRUE(says(error_of(arriving("", {{"arrivals", "0"}})), "arrivals=0 is not valid"));
  EXPECT_TRUE(says(error_of(arriving("", {{"arrivals", "5"}})), "arrivals=5 needs a workload"));
  EXPECT_TRUE(says(error_of(arriving("q1kv9", {{"arrivals", "5"}})), "no prompts"));
  EXPECT_TRUE(says(error_of(arriving("q8", {{"arrivals", "-1"}})), "float in 0.001..1000000"));
}

// The calls behind the queue are of sequences beside those of the word: here of two prompts, so
// that both sequences with a cache of 2,048 and 16 positions are held twice.
TEST(Arrivals, AreForecastWithWhatTheirCallsHold) {
  const auto bytes = [](std::map<std::string, std::string> axes) {
    axes["workload"] = "2q2k";
    return plan(request_with(std::move(axes), {"full"})).cells.at(0).forecast_bytes;
  };
  const int64_t alone = bytes({});
  EXPECT_GE(bytes({{"arrivals", "5"}}), alone + 2 * 2064 * 2 * 4 * 64 * 4);
  EXPECT_LE(bytes({{"arrivals", "5"}}), 3 * alone);
}

}  // namespace
}  // namespace attn::packings_test
