// A variant that declares no cost says so, and what is counted in its place is what formulas
// declare where there are some.
#include "variants/api/counted_cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/parallel.h"
#include "tests/variants/undeclared.h"
#include "variants/catalog.h"

namespace attn::counted_cost_test {
namespace {

constexpr AttentionShape kShape = {
    .batch = 2, .heads = 3, .q_len = 96, .kv_len = 128, .head_dim = 16};

TEST(CountedCost, IsOptionalToDeclare) {
  const auto without = attention_for(undeclared(), kShape);
  EXPECT_FALSE(without->declared_cost(kShape));
  EXPECT_THROW(without->cost(kShape), Error);
  const auto with = attention_for(find_variant("full"), kShape);
  ASSERT_TRUE(with->declared_cost(kShape));
  EXPECT_EQ(with->declared_cost(kShape)->flops, with->cost(kShape).flops);
}

TEST(CountedCost, IsExactForProducts) {
  const CountedCost counted = counted_cost(*attention_for(undeclared(), kShape), kShape);
  EXPECT_EQ(counted.flops, 4.0 * 6 * 96 * 128 * 16);
  EXPECT_EQ(counted.peak_bytes, sizeof(real) * 6.0 * 96 * (3 * 128 + 16));
}

TEST(CountedCost, IsWhatFormulasDeclare) {
  set_threads(1);
  for (const VariantInfo& info : all_variants()) {
    AttentionShape shape = kShape;
    shape.q_len = shape.kv_len = 256;
    const auto attention = attention_for(info, shape);
    const CountedCost counted = counted_cost(*attention, shape);
    const Cost declared = attention->cost(shape);
    EXPECT_NEAR(counted.flops / declared.flops, 1, 0.05) << info.name;
    EXPECT_LE(std::abs(counted.peak_bytes - declared.peak_bytes), 0.05 * declared.peak_bytes + 8192)
        << info.name;
  }
}

TEST(CountedCost, StatesAreThoseOfDecoders) {
  AttentionShape shape = kShape;
  shape.q_len = shape.kv_len = 128;
  EXPECT_FALSE(held_state_bytes(undeclared(), {}, shape)) << "it cannot decode";
  const auto with = attention_for(find_variant("linear"), shape);
  const double declared = with->cost(shape).state_bytes;
  EXPECT_EQ(held_state_bytes(find_variant("linear"), {}, shape), declared);
  EXPECT_EQ(held_state_bytes(undeclared_linear(), {}, shape), declared);
  EXPECT_EQ(held_state_bytes(undeclared_linear(), {}, shape, 1),
            declared / static_cast<double>(shape.heads));
  shape.causal = true;
  EXPECT_EQ(attention_for(undeclared_linear(), shape)->state_bytes(shape), declared);
}

}  // namespace
}  // namespace attn::counted_cost_test
