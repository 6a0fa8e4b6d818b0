// What a variant declares of itself: costs of a pass and of a step, shapes to leave out, visible
// pairs.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "tests/variants/undeclared.h"
#include "variants/api/counted_cost.h"
#include "variants/api/visible_pairs.h"
#include "variants/catalog.h"

namespace attn::declared_test {
namespace {

// A variant that declares no cost says so, and what is counted in its place is what formulas
// declare where there are some.

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

// The declared cost of a decode step, written out by hand. A decoder and its counts have one
// author, so the contract cannot tell a wrong formula from a right one.

constexpr int64_t kHeads = 2, kDim = 8, kWidth = kHeads * kDim;
constexpr int64_t kBefore = 12;         // positions appended before the step
constexpr int64_t kSeen = kBefore + 1;  // by a query that sees all
constexpr double kSize = sizeof(real);

struct StepCost {
  const char* variant;
  std::map<std::string, ParamValue> given;
  double flops, bytes;
  int64_t kv_heads = kHeads;
};

StepCost of_nsa(int64_t shared_by) {
  constexpr double kMeans = 3, kWindow = 6, kChosen = 1 + 2 * 4;
  return {"nsa",
          {{"block", int64_t{4}},
           {"blocks", int64_t{3}},
           {"window", int64_t{5}},
           {"shared_by", shared_by},
           {"compression", std::string("mean")}},
          4 * 2 * kDim * (kMeans + kWindow + kChosen),
          2 * kSize * kDim * (kMeans + kWindow + 2 / static_cast<double>(shared_by) * kChosen + 1),
          1};
}

std::vector<StepCost> costs() {
  const auto whole = [](int64_t x) { return ParamValue(x); };
  // Products of a query with keys and of its weights with values; keys and values read, and one
  // position of them written.
  const auto of_pairs = [](double seen) { return 4 * kHeads * kDim * seen; };
  const auto of_cache = [](double seen) { return 2 * kSize * kHeads * kDim * (seen + 1); };
  return {
      {"relu", {}, of_pairs(kSeen), of_cache(kSeen)},
      // Position 12 is the first of its block of 4 and sees the block before.
      {"local", {{"block", whole(4)}, {"look_back", whole(1)}}, of_pairs(5), of_cache(5)},
      {"truncated", {{"window", whole(6)}}, of_pairs(7), of_cache(7)},
      {"sinks", {{"window", whole(6)}, {"sinks", whole(2)}}, of_pairs(8), of_cache(8)},
      // All keys are scored, and 4 values read.
      {"topk",
       {{"keys", whole(4)}},
       2 * kHeads * kDim * (kSeen + 4),
       kSize * kHeads * kDim * (kSeen + 4 + 2)},
      // The means of 3 blocks; of keys and values the own position and a block.
      {"moba",
       {{"block", whole(4)}, {"blocks", whole(2)}},
       2 * kHeads * kDim * (3 + 2 * 5),
       kSize * kHeads * kDim * (3 + 2 * 5 + 2)},
      // Both query heads share keys: of these the means and the window are read once, the chosen
      // blocks by each, or once where both choose together.
      of_nsa(1),
      of_nsa(2),
      // Queries and the new key through the projections; then `units` numbers and a value a key.
      {"additive",
       {},
       kHeads * (4 * kDim * kDim + 5 * kDim * kSeen),
       kSize * kHeads * (2 * kDim * (kSeen + 1) + (2 * kDim + 1) * kDim)},
      // Four gates of the input and of the state; h and c read and written, both matrices read.
      {"recurrent",
       {},
       2 * 4 * kWidth * (kWidth + kWidth),
       kSize * (2 * 2 * kWidth + 2 * 4 * kWidth * kWidth)},
      {"conv",
       {{"kernel", whole(3)}},
       2 * 3 * kWidth * kWidth,
       kSize * (2 * 2 * kWidth + 3 * kWidth * kWidth)},
      {"synthesizer",
       {{"kind", std::string("dense")}},
       of_pairs(kSeen),
       2 * kSize * kHeads * kDim * kSeen}};
}

std::unique_ptr<Attention> built(const char* variant,
                                 const std::map<std::string, ParamValue>& given) {
  return find_variant(variant).build(
      {.heads = kHeads, .head_dim = kDim, .max_len = 100, .causal = true, .seed = 1, .params = {}},
      given);
}

TEST(StepCost, IsTheOneWrittenOut) {
  for (const StepCost& cost : costs()) {
    const Tensor past = bridge::normal({1, cost.kv_heads, kBefore, kDim}, "past");
    const auto attention = built(cost.variant, cost.given);
    const auto decoder = attention->decoder(1, 100, cost.kv_heads);
    std::vector<Tensor> gates;
    for (const int64_t width : decoder->gate_widths())
      gates.push_back(Tensor::zeros({1, kHeads, kBefore, width}));
    const Tensor q = bridge::normal({1, kHeads, kBefore, kDim}, "q");
    decoder->extend(past, past, q, gates);
    EXPECT_EQ(decoder->step_flops(), cost.flops) << cost.variant;
    EXPECT_EQ(decoder->step_bytes(), cost.bytes) << cost.variant;
  }
}

// Before its first step a reformer cannot know its buckets: it names the most keys there can be.
TEST(StepCost, OfAReformerIsBoundedBeforeItsFirstStep) {
  const auto attention = built("reformer", {});
  const auto decoder = attention->decoder(1, 100);
  const Tensor past = bridge::normal({1, kHeads, kBefore, kDim}, "past");
  decoder->extend(past, past, past);
  const double rotations = static_cast<double>(attention->weights()[0].value.shape().size());
  EXPECT_EQ(decoder->step_flops(), 2 * rotations + 4 * kHeads * kDim * kBefore);
}

// Why a shape cannot run, of every variant: who shows a reason puts the variant's name before it.

TEST(SkipReasons, DoNotNameTheirVariantAgain) {
  int reasons = 0;
  for (const VariantInfo& info : all_variants()) {
    const Params params(info.name, info.params);
    for (const bool causal : {false, true})
      for (const AttentionShape& shape :
           {AttentionShape{1, 2, 9, 4, 8, causal}, AttentionShape{1, 3, 4, 9, 5, causal},
            AttentionShape{1, 2, 300'000, 300'000, 8, causal}})
        if (const auto reason = info.why_not(shape, params)) {
          reasons++;
          EXPECT_EQ(reason->find(info.name + ":"), std::string::npos) << *reason;
          EXPECT_FALSE(reason->starts_with(info.name)) << *reason;
        }
  }
  EXPECT_GT(reasons, 100) << "of other causality and other lengths";
}

// What tells a user that causal attention would run is data, not a text.
TEST(SkipReasons, CausalAloneIsSaidByTheEntry) {
  int alone = 0;
  for (const VariantInfo& info : all_variants()) {
    const Params params(info.name, info.params);
    const AttentionShape any{1, 2, 16, 16, 8, false}, causal{1, 2, 16, 16, 8, true};
    EXPECT_EQ(info.lacks_causal(any), info.why_not(any, params) && !info.why_not(causal, params))
        << info.name;
    EXPECT_FALSE(info.lacks_causal(causal));
    alone += info.causal_alone;
  }
  EXPECT_EQ(alone, 4) << "moba, dsa, nsa, csa";
}

TEST(SkipReasons, CosformerSaysWhichSpanSuffices) {
  const VariantInfo& info = find_variant("cosformer");
  const AttentionShape more_queries{1, 2, 9, 4, 8, false};
  const auto reason = info.why_not(more_queries, Params(info.name, info.params));
  ASSERT_TRUE(reason);
  EXPECT_NE(reason->find("span=9 suffices"), std::string::npos) << *reason;
  const auto with_span = [&](int64_t span) {
    return info.why_not(more_queries, Params(info.name, info.params, {{"span", span}}));
  };
  EXPECT_FALSE(with_span(9));
  EXPECT_EQ(with_span(8), "9 positions exceed span=8, the distance where weights end");
}

// The mask as numbers, against the sentence in attention.h that defines it.

TEST(VisiblePairs, FollowTheDefinition) {
  for (const bool causal : {false, true}) {
    for (const std::vector<int64_t>& lengths :
         {std::vector<int64_t>{}, std::vector<int64_t>{3, 0}}) {
      for (const int64_t q_len : {2, 5, 7}) {
        const Tensor pairs = visible_pairs({causal, lengths}, {2, 3, q_len, 4}, {2, 3, 5, 4});
        ASSERT_EQ(pairs.shape(), Shape({2, 3, q_len, 5}));
        for (int64_t b = 0, at = 0; b < 2; b++)
          for (int64_t h = 0; h < 3; h++)
            for (int64_t i = 0; i < q_len; i++)
              for (int64_t j = 0; j < 5; j++, at++) {
                const bool valid = lengths.empty() || j < lengths[static_cast<size_t>(b)];
                ASSERT_EQ(pairs[at], valid && (!causal || j <= i + 5 - q_len) ? 1 : 0);
              }
      }
    }
  }
}

}  // namespace
}  // namespace attn::declared_test
