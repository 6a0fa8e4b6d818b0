// The axis workload in plans: what its word decides, one cell a batch, what does not go with it,
// what is skipped, forecasts, and cells that have none.
#include <gtest/gtest.h>

#include "harness/cell/codec.h"
#include "harness/measure/mixed_batch.h"
#include "harness/plan/shapes.h"
#include "tests/harness/plan/planned.h"

namespace attn::workloads_test {
namespace {

SweepRequest serving(const std::string& word, std::map<std::string, std::string> axes = {},
                     std::string variant = "full") {
  axes["workload"] = word;
  return request_with(std::move(axes), {std::move(variant)});
}

TEST(WorkloadAxis, AWordDecidesTheShape) {
  const Plan found = plan(serving("2q64_3q1kv16", {{"threads", "1,2"}}));
  ASSERT_EQ(found.cells.size(), 2u);
  const Axes& axes = found.cells[0].key.axes;
  EXPECT_EQ(axes.workload, "2q64_3q1kv16");
  EXPECT_EQ(axes.length, 64);
  EXPECT_EQ(axes.batch, 5);
  EXPECT_EQ(axes.mode, Mode::serve);
  EXPECT_EQ(axes.scope, ScopeKind::attention);
  EXPECT_EQ(axes.causal, true);
  EXPECT_EQ(found.cells[0].skip, "");
  EXPECT_GT(found.cells[0].forecast_s, 0);
  EXPECT_GT(found.cells[0].forecast_bytes, 0);
  EXPECT_EQ(workload_of(found.cells[0].key).served, parse_mixed_batch("2q64_3q1kv16"));
  EXPECT_EQ(axes, row_of(to_json(Row{.key = found.cells[0].key,
                                     .result = {.status = Status::failed, .reason = "none"}}))
                      .key.axes);
}

TEST(WorkloadAxis, OneBatchIsOneCell) {
  EXPECT_EQ(ids(serving("2q1024kv2048")), ids(serving("2q1kkv2k")));
  EXPECT_EQ(ids(serving("q2k,1q2048,q2kkv2k")).size(), 1u);
  EXPECT_EQ(ids(serving("q8,q8kv16")).size(), 2u);
}

TEST(WorkloadAxis, LabelsNameItAndNotWhatItDecides) {
  const Plan found = plan(serving("q8,2q1kv64"));
  EXPECT_EQ(found.cells.at(0).label, "speed full q8");
  EXPECT_EQ(found.cells.at(1).label, "speed full 2q1kv64");
  EXPECT_EQ(plan(serving("q8")).cells.at(0).label, "speed full q8");
}

TEST(WorkloadAxis, CellsWithoutOneAreTheCellsOfBefore) {
  const Plan without = plan(request_with({{"mode", "decode"}}, {"full"}));
  EXPECT_FALSE(says(to_json(without.cells.at(0).key).dump(), "workload"));
}

TEST(WorkloadAxis, WhatItDecidesIsNotAskedForToo) {
  for (const auto& [axis, value] : {std::pair("length", "64"),
                                    {"batch", "2"},
                                    {"mode", "decode"},
                                    {"scope", "layer"},
                                    {"layers", "3"},
                                    {"equal", "flops"},
                                    {"causal", "true"}})
    EXPECT_TRUE(says(error_of(serving("q8", {{axis, value}})),
                     fmt::format("axis {}={} does not apply to a workload", axis, value)));
  SweepRequest broken_down = serving("q8");
  broken_down.breakdown = true;
  EXPECT_TRUE(says(error_of(broken_down), "--breakdown is of passes, and workload q8 is of calls"));
  SweepRequest tokens = serving("q8");
  tokens.tokens = 1024;
  EXPECT_TRUE(says(error_of(tokens), "--tokens 1024 does not apply to a workload"));
  EXPECT_TRUE(says(error_of(serving("q8", {{"measure", "memory"}})),
                   "axis workload=q8 does not apply to measure memory"));
  EXPECT_TRUE(says(error_of(serving("3q1kv0")), "a cache of 0 cannot hold"));
  EXPECT_TRUE(says(error_of(request_with({{"mode", "serve"}}, {"full"})), "mode=serve"));
}

TEST(WorkloadAxis, AModelsShapeGivesTheHeads) {
  SweepRequest request = serving("q8", {}, "full");
  request.shapes = {find_shape("llama3-8b")};
  const Axes axes = plan(request).cells.at(0).key.axes;
  EXPECT_EQ(axes.heads, 32);
  EXPECT_EQ(axes.kv_heads, 8);
  EXPECT_EQ(axes.workload, "q8");
}

TEST(WorkloadAxis, WhatCannotServeIsSkipped) {
  const auto reason = [](const SweepRequest& request) { return plan(request).cells.at(0).skip; };
  EXPECT_NE(reason(serving("q8", {}, "linformer")), "");
  EXPECT_EQ(reason(serving("q8", {}, "linear")), "");
  EXPECT_TRUE(says(reason(serving("q8", {{"dtype", "bfloat16"}})), "served in float32"));
  EXPECT_EQ(reason(serving("q8", {{"kv_dtype", "int8"}})), "");
  EXPECT_EQ(reason(serving("q8", {{"kv_dtype", "int8"}}, "linear")),
            "its decoder has no cache of int8");
}

}  // namespace
}  // namespace attn::workloads_test
