// The axis kv_dtype in plans: cells of float32 are the cells of before, what has no cache is left
// out or skipped with the reason, wrong use, conditions, forecasts.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "tests/harness/plan/planned.h"
#include "tests/said.h"

namespace attn::kv_dtype_test {
namespace {

SweepRequest decoding(std::map<std::string, std::string> axes, std::string variant = "full") {
  axes.try_emplace("mode", "decode");
  axes.try_emplace("length", "64");
  return request_with(std::move(axes), {std::move(variant)});
}

TEST(KvDtypeAxis, CellsOfFloat32AreTheCellsOfBefore) {
  const Plan without = plan(decoding({}));
  EXPECT_FALSE(says(to_json(without.cells.at(0).key).dump(), "kv_dtype"));
  EXPECT_EQ(ids(decoding({{"kv_dtype", "float32"}})), ids(decoding({})));
  EXPECT_EQ(ids(decoding({{"dtype", "bfloat16"}, {"kv_dtype", "bfloat16"}})),
            ids(decoding({{"dtype", "bfloat16"}})))
      << "the cache of bfloat16 is of bfloat16";
  EXPECT_NE(ids(decoding({{"dtype", "bfloat16"}, {"kv_dtype", "bfloat16"}}, "fox")),
            ids(decoding({{"dtype", "bfloat16"}}, "fox")))
      << "its cache is of float32 whatever the numbers are";
  const SweepRequest fidelity = request_with({{"measure", "fidelity"},
                                              {"causal", "true"},
                                              {"dtype", "bfloat16"},
                                              {"kv_dtype", "bfloat16"}},
                                             {"full"});
  EXPECT_TRUE(says(plan(fidelity).cells.at(0).skip, "queries in float32"));
  EXPECT_EQ(
      ids(decoding({{"kv_dtype", "float32,bfloat16,int8,int4,int8/int4,int4/float32"}})).size(),
      6u);
}

TEST(KvDtypeAxis, ALabelTellsIt) {
  const Plan found = plan(decoding({{"kv_dtype", "float32,int8/int4"}}));
  EXPECT_EQ(found.cells.at(0).label, "speed full length=64");
  EXPECT_EQ(found.cells.at(1).label, "speed full length=64 kv_dtype=int8/int4");
  EXPECT_EQ(found.cells.at(1).skip, "");
}

TEST(KvDtypeAxis, APassHasNoCache) {
  const Plan both = plan(decoding({{"mode", "forward,decode"}, {"kv_dtype", "int8,int4"}}));
  ASSERT_EQ(both.cells.size(), 3u);
  for (const Cell& cell : both.cells)
    EXPECT_EQ(cell.key.axes.kv_dtype.has_value(), cell.key.axes.mode == Mode::decode);
}

TEST(KvDtypeAxis, WrongUse) {
  EXPECT_TRUE(says(error_of(decoding({{"mode", "forward"}, {"kv_dtype", "int8"}})),
                   "axis kv_dtype=int8 applies to mode decode, a workload and fidelity, and the "
                   "mode is forward; add --mode decode"));
  EXPECT_TRUE(says(error_of(decoding({{"kv_dtype", "int3"}})), "int3"));
}

TEST(KvDtypeAxis, WhatHasNoSuchCacheIsSkipped) {
  EXPECT_EQ(plan(decoding({{"kv_dtype", "int8"}}, "linear")).cells.at(0).skip,
            "its decoder has no cache of int8");
  const SweepRequest fidelity =
      request_with({{"measure", "fidelity"}, {"length", "64"}, {"kv_dtype", "int8"}}, {"full"});
  EXPECT_TRUE(says(plan(fidelity).cells.at(0).skip, "add --causal true"));
  SweepRequest causal = fidelity;
  causal.axes["causal"] = "true";
  EXPECT_EQ(plan(causal).cells.at(0).skip, "");
}

TEST(KvDtypeAxis, AForecastHoldsLess) {
  const auto bytes = [](const char* type) {
    return plan(decoding({{"kv_dtype", type}, {"length", "65536"}, {"heads", "8"}}))
        .cells.at(0)
        .forecast_bytes;
  };
  EXPECT_LT(bytes("int8"), bytes("float32"));
  EXPECT_LT(bytes("int4"), bytes("int8"));
}

}  // namespace
}  // namespace attn::kv_dtype_test
