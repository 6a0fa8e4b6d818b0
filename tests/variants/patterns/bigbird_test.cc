// bigbird: what its blocks see, read off its weights, against the paper's description; then the
// numbers against the oracle with that pattern, and decoding.
#include <gtest/gtest.h>

#include <set>

#include "tests/variants/pattern_check.h"

namespace attn::bigbird_test {
namespace {

using bridge::Given;

Given given(int64_t block, int64_t window, int64_t global, int64_t random) {
  return {{"block", block},
          {"window_blocks", window},
          {"global_blocks", global},
          {"random_blocks", random}};
}

// seen[b][h][query block]: blocks of keys, read off the weights; each seen key weighs the same.
std::set<int64_t> seen_blocks(const Tensor& weights, int64_t head, int64_t row, int64_t size) {
  const int64_t n = weights.dim(3);
  const real* const w = weights.data() + (head * n + row) * n;
  std::set<int64_t> seen;
  double count = 0;
  for (int64_t j = 0; j < n; ++j) count += w[j] > 0;
  for (int64_t j = 0; j < n; ++j) {
    if (!(w[j] > 0)) continue;
    seen.insert(j / size);
    EXPECT_NEAR(static_cast<double>(w[j]), 1 / count, 1e-6) << row << " sees " << j;
  }
  return seen;
}

TEST(BigBird, SeesNeighboursEndsAndRandomBlocks) {
  constexpr int64_t kSize = 4, kBlocks = 14, n = kSize * kBlocks - 1;
  std::set<std::set<int64_t>> different;
  for (const bool causal : {false, true}) {
    const auto attention = bridge::build("bigbird", given(kSize, 3, 2, 2), n, causal);
    const Tensor weights = bridge::even_weights(*attention, n, {causal, {}});
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t b = 0; b < kBlocks; ++b) {
        const int64_t last = std::min(n, (b + 1) * kSize) - 1, ahead = causal ? b : kBlocks - 1;
        std::set<int64_t> seen = seen_blocks(weights, head, last, kSize);
        different.insert(seen);
        SCOPED_TRACE(testing::Message() << "block " << b << " of head " << head);
        if (b == 0 || (b == kBlocks - 1 && !causal)) {
          EXPECT_EQ(std::ssize(seen), ahead + 1);
          continue;
        }
        std::set<int64_t> named = {0, b - 1, b};
        if (!causal) named.insert({b + 1, kBlocks - 1});
        for (const int64_t key : named) EXPECT_EQ(seen.erase(key), 1u) << key;
        EXPECT_EQ(std::ssize(seen), std::min<int64_t>(2, ahead + 1 - std::ssize(named)));
        for (const int64_t key : seen) EXPECT_LE(key, ahead);
      }
  }
  EXPECT_GT(different.size(), 30u) << "random blocks differ from block to block and head to head";
}

// Long Range Arena's code, at any length above.
TEST(BigBird, AsLraDrawsFromTheFirst1024Positions) {
  if (kIsDouble) GTEST_SKIP() << "what is drawn is the same in float";
  constexpr int64_t kSize = 128, kBlocks = 12, n = kSize * kBlocks;
  constexpr int64_t kDim = 128;  // few forwards read off all weights
  Given params = given(kSize, 1, 0, 3);
  for (const std::string& as : {std::string("paper"), std::string("lra")}) {
    params["as"] = as;
    const Tensor weights = bridge::even_weights(
        *bridge::build("bigbird", params, n, false, 3, kDim), n, {false, {}}, kDim);
    std::set<int64_t> late;
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t b = 0; b < kBlocks; ++b) {
        const std::set<int64_t> seen = seen_blocks(weights, head, b * kSize, kSize);
        EXPECT_EQ(seen.size(), 4u) << "its own and three";
        for (const int64_t key : seen)
          if (key != b && key >= 1024 / kSize) late.insert(key);
      }
    EXPECT_EQ(late.empty(), as == "lra");
  }
}

TEST(BigBird, SeedsDraw) {
  const auto weights = [](uint64_t seed) {
    const auto attention = bridge::build("bigbird", given(4, 1, 0, 2), 40, false, seed);
    return bridge::even_weights(*attention, 40, {false, {}});
  };
  EXPECT_TRUE(bridge::same_bits(weights(1), weights(1)));
  EXPECT_FALSE(bridge::same_bits(weights(1), weights(2)));
}

void expect_its_pattern(const Given& params, int64_t n, const Mask& mask) {
  const Tensor weights =
      bridge::even_weights(*bridge::build("bigbird", params, n, mask.causal), n, mask);
  bridge::expect_pattern("bigbird", params, n, mask,
                         [&](int64_t b, int64_t h, int64_t i, int64_t j) {
                           return weights[((b * 2 + h) * n + i) * n + j] > 0;
                         });
}

TEST(BigBird, EqualsTheOracleOnItsPattern) {
  for (const Given& params :
       {given(4, 3, 2, 3), given(5, 1, 0, 1), given(7, 2, 3, 2), given(16, 3, 2, 0)})
    for (const int64_t n : {1, 37, 64})
      for (const bool causal : {false, true}) {
        expect_its_pattern(params, n, {causal, {}});
        expect_its_pattern(params, n, {causal, {n / 2, n - n / 8}});
      }
  for (const bool causal : {false, true})  // whole panels of keys, which are packed ahead
    expect_its_pattern(given(64, 3, 2, 2), 460, {causal, {460, 300}});
}

// A random block that repeats a neighbour or an end, or a window that reaches into an end, must not
// make keys count twice: the weights of equal logits are equal, at every number of blocks.
TEST(BigBird, RegressionNoBlockCountsTwice) {
  for (int64_t n = 4; n <= 36; n += 4) {
    const auto attention = bridge::build("bigbird", given(4, 3, 2, 3), n, false);
    const Tensor weights = bridge::even_weights(*attention, n, {false, {}});
    for (int64_t head = 0; head < 4; ++head)
      for (int64_t i = 0; i < n; ++i) seen_blocks(weights, head, i, 4);
  }
}

// The last block is that of the valid keys: padding does not move it.
TEST(BigBird, PaddingDoesNotMoveTheLastBlock) {
  const auto attention = bridge::build("bigbird", given(4, 1, 2, 1), 40, false);
  const Tensor padded = bridge::even_weights(*attention, 40, {false, {21, 21}}),
               alone = bridge::even_weights(*attention, 21, {false, {}});
  for (int64_t at = 0; at < alone.size(); ++at)
    ASSERT_NEAR(static_cast<double>(alone[at]),
                static_cast<double>(padded[(at / 441 * 40 + at / 21 % 21) * 40 + at % 21]), 1e-6);
}

TEST(BigBird, Decodes) {
  for (const int64_t n : {3, 12, 40}) {
    bridge::expect_decoding("bigbird", given(4, 3, 2, 2), n);
    bridge::expect_decoding("bigbird", given(5, 1, 0, 0), n);
  }
}

}  // namespace
}  // namespace attn::bigbird_test
