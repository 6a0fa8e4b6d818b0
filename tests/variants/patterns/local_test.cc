// local against the oracle: contiguous blocks and neighbours, Long Range Arena's groups, decoding.
#include <gtest/gtest.h>

#include "tests/variants/pattern_check.h"

namespace attn::local_test {
namespace {

using bridge::everywhere;
using bridge::Given;

TEST(Local, BlocksAndNeighbours) {
  for (const int64_t block : {1, 5, 16, 100})
    for (const int64_t neighbours : {0, 1, 2}) {
      SCOPED_TRACE(testing::Message() << "block " << block << " neighbours " << neighbours);
      bridge::expect_pattern_everywhere(
          "local", {{"block", block}, {"look_back", neighbours}, {"look_ahead", neighbours / 2}},
          everywhere(oracle::blocks(block, neighbours, neighbours / 2)));
    }
}

TEST(Local, AsLongRangeArena) {
  for (const int64_t n : {1, 20, 37})
    for (const bool padded : {false, true}) {
      Mask mask;
      if (padded) mask.kv_lengths = {n / 2, n - n / 8};
      bridge::expect_pattern("local", {{"block", int64_t{5}}, {"as", std::string("lra")}}, n, mask,
                             [&](int64_t b, int64_t, int64_t i, int64_t j) {
                               const int64_t length =
                                   padded ? mask.kv_lengths[static_cast<size_t>(b)] : n;
                               return oracle::reshaped_blocks(5, length)(i, j);
                             });
    }
}

// Rows so long that groups are gathered some at a time, the last time fewer.
TEST(Local, AsLongRangeArenaInSeveralChunks) {
  const Given given = {{"block", int64_t{80}}, {"as", std::string("lra")}};
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {375, 170}})
    bridge::expect_pattern(
        "local", given, 375, {false, lengths},
        [&](int64_t b, int64_t, int64_t i, int64_t j) {
          return oracle::reshaped_blocks(
              80, lengths.empty() ? 375 : lengths[static_cast<size_t>(b)])(i, j);
        },
        64);
}

// A reshape that takes every (n/block)-th position for a block computes something else.
TEST(Local, RegressionABlockIsContiguousAndNotStrided) {
  const Given given = {{"block", int64_t{4}}};
  const Tensor weights =
      bridge::even_weights(*bridge::build("local", given, 16, false), 16, {false, {}});
  for (int64_t at = 0; at < weights.size(); ++at) {
    const int64_t i = at / 16 % 16, j = at % 16;
    EXPECT_NEAR(static_cast<double>(weights[at]), i / 4 == j / 4 ? 0.25 : 0, 1e-6)
        << i << " sees " << j;
  }
}

TEST(Local, Decodes) {
  for (const int64_t back : {0, 1, 2})
    for (const int64_t n : {3, 12, 40})
      bridge::expect_decoding("local", {{"block", int64_t{6}}, {"look_back", back}}, n);
}

}  // namespace
}  // namespace attn::local_test
