// The declared cost of a decode step, written out by hand. A decoder and its counts have one
// author, so the contract cannot tell a wrong formula from a right one.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::step_cost_test {
namespace {

constexpr int64_t kHeads = 2, kDim = 8, kWidth = kHeads * kDim;
constexpr int64_t kBefore = 12;         // positions appended before the step
constexpr int64_t kSeen = kBefore + 1;  // by a query that sees all
constexpr double kSize = sizeof(real);

struct StepCost {
  const char* variant;
  std::map<std::string, ParamValue> given;
  double flops, bytes;
};

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
  const Tensor past = bridge::normal({1, kHeads, kBefore, kDim}, "past");
  for (const StepCost& cost : costs()) {
    const auto attention = built(cost.variant, cost.given);
    const auto decoder = attention->decoder(1, 100);
    decoder->extend(past, past, past);
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

}  // namespace
}  // namespace attn::step_cost_test
