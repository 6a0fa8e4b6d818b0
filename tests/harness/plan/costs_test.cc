// Costs: what is remembered is what a variant that is built anew says.
#include "harness/plan/costs.h"

#include <gtest/gtest.h>

#include "variants/catalog.h"

namespace attn::costs_test {
namespace {

bool are_equal(const Cost& one, const Cost& other) {
  return one.flops == other.flops && one.peak_bytes == other.peak_bytes &&
         one.state_bytes == other.state_bytes;
}

TEST(Costs, AreThoseOfAVariantBuiltAnew) {
  Costs costs;
  for (int round = 0; round < 2; round++)
    for (const VariantInfo& info : all_variants())
      for (const int64_t length : {8, 300})
        for (const int64_t batch : {1, 3})
          for (const int64_t heads : {1, 2})
            for (const bool causal : {false, true}) {
              const AttentionShape shape{batch, heads, length, length, 16, causal};
              const Params params(info.name, info.params);
              Costs anew;
              EXPECT_TRUE(are_equal(costs.of(info, params, shape), anew.of(info, params, shape)))
                  << info.name << " " << length << " " << batch << " " << heads << " " << causal;
            }
}

TEST(Costs, ParametersAndTheNumberOfQueriesCount) {
  Costs costs;
  const VariantInfo& info = find_variant("linformer");
  const Params few(info.name, info.params, {{"rank", int64_t{8}}});
  const Params many(info.name, info.params, {{"rank", int64_t{16}}});
  const AttentionShape shape{1, 2, 64, 64, 16, false};
  AttentionShape one_query = shape;
  one_query.q_len = 1;
  EXPECT_LT(costs.of(info, few, shape).flops, costs.of(info, many, shape).flops);
  EXPECT_LT(costs.of(info, few, one_query).flops, costs.of(info, few, shape).flops);
}

TEST(Costs, WhatCannotBeBuiltCostsNothing) {
  const VariantInfo& info = find_variant("linformer");
  const AttentionShape huge{1, 1024, 1 << 22, 1 << 22, 1024, false};
  const Params params(info.name, info.params, {{"rank", int64_t{1'000'000'000}}});
  Costs costs;
  EXPECT_EQ(costs.of(info, params, huge).flops, 0);
  EXPECT_EQ(costs.of(info, params, huge).flops, 0);
}

}  // namespace
}  // namespace attn::costs_test
