// sparse against the oracle: strided and fixed patterns, Long Range Arena's, decoding.
#include <gtest/gtest.h>

#include "tests/variants/pattern_check.h"

namespace attn::sparse_test {
namespace {

using bridge::everywhere;
using bridge::Given;

Given fixed(int64_t stride, int64_t summary) {
  return {{"pattern", std::string("fixed")}, {"stride", stride}, {"summary", summary}};
}

TEST(Sparse, Strided) {
  for (const int64_t stride : {1, 2, 6, 13, 50}) {
    SCOPED_TRACE(testing::Message() << "stride " << stride);
    bridge::expect_pattern_everywhere("sparse", {{"stride", stride}},
                                      everywhere(oracle::strided(stride)));
  }
}

TEST(Sparse, Fixed) {
  for (const int64_t stride : {1, 6, 13, 50})
    for (const int64_t summary : {1, 3, 13}) {
      SCOPED_TRACE(testing::Message() << "stride " << stride << " summary " << summary);
      bridge::expect_pattern_everywhere(
          "sparse", fixed(stride, summary),
          everywhere(oracle::fixed(stride, std::min(stride, summary))));
    }
}

TEST(Sparse, AsLongRangeArena) {
  for (const int64_t summary : {1, 5, 6})
    bridge::expect_pattern_everywhere(
        "sparse", {{"as", std::string("lra")}, {"stride", int64_t{6}}, {"summary", summary}},
        everywhere(oracle::arena_fixed(6, summary)));
}

TEST(Sparse, LongSequencesInSeveralPieces) {
  for (const bool causal : {false, true}) {
    bridge::expect_pattern("sparse", {{"stride", int64_t{20}}}, 330, {causal, {330, 290}},
                           everywhere(oracle::strided(20)));
    bridge::expect_pattern("sparse", fixed(20, 18), 330, {causal, {330, 290}},
                           everywhere(oracle::fixed(20, 18)));
  }
}

// Columns so long that groups are gathered some at a time, the last time fewer.
TEST(Sparse, LongColumnsInSeveralChunks) {
  for (const bool causal : {false, true})
    for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {375, 170}})
      bridge::expect_pattern("sparse", {{"stride", int64_t{5}}}, 375, {causal, lengths},
                             everywhere(oracle::strided(5)), 64);
}

// The stride of 0 is one number for all lengths that a model sees: else a decoder, which does not
// know how long its sequence will be, would see something else than the forward.
TEST(Sparse, RegressionTheOwnStrideFollowsTheLongestLengthAlone) {
  const auto built = [](int64_t max_len, bool causal) {
    return bridge::build("sparse", {}, max_len, causal);
  };
  for (const int64_t n : {20, 37, 57}) {
    const Tensor weights = bridge::even_weights(*built(57, false), n, {false, {}});
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        EXPECT_EQ(weights[i * n + j] > 0, oracle::strided(8)(i, j)) << i << " sees " << j;
  }
  EXPECT_EQ(built(56, false)->cost({1, 1, 40, 40, 5, false}).flops,  // 7.48 is nearest to 7
            bridge::build("sparse", {{"stride", int64_t{7}}}, 99, false)
                ->cost({1, 1, 40, 40, 5, false})
                .flops);
  for (const int64_t n : {12, 40}) bridge::expect_decoding("sparse", {}, n);
  const Given lra = {{"as", std::string("lra")}}, stride = {{"stride", int64_t{128}}};
  Given both = lra;
  both.insert(stride.begin(), stride.end());
  EXPECT_EQ(bridge::build("sparse", lra, 300, true)->cost({1, 1, 300, 300, 5, true}).flops,
            bridge::build("sparse", both, 300, true)->cost({1, 1, 300, 300, 5, true}).flops);
}

// Every limit of the pattern that is softmax attention.
TEST(Sparse, CoversEverythingAtItsLimits) {
  const auto all = everywhere([](int64_t, int64_t) { return true; });
  bridge::expect_pattern_everywhere("sparse", {{"stride", int64_t{64}}}, all);
  bridge::expect_pattern_everywhere("sparse", {{"stride", int64_t{1}}}, all);
  bridge::expect_pattern_everywhere("sparse", fixed(64, 1), all);
  bridge::expect_pattern_everywhere("sparse", fixed(7, 7), all);
}

// The own position and those a stride away are in both sets, the own block's summaries too.
TEST(Sparse, RegressionKeysOfBothSetsCountOnce) {
  const auto expect_even = [](const Given& given, const oracle::Pattern& pattern) {
    const Tensor weights =
        bridge::even_weights(*bridge::build("sparse", given, 20, false), 20, {false, {}});
    for (int64_t i = 0; i < 20; ++i) {
      double count = 0;
      for (int64_t j = 0; j < 20; ++j) count += pattern(i, j);
      for (int64_t j = 0; j < 20; ++j)
        EXPECT_NEAR(static_cast<double>(weights[i * 20 + j]), pattern(i, j) ? 1 / count : 0, 1e-6)
            << i << " sees " << j;
    }
  };
  expect_even({{"stride", int64_t{4}}}, oracle::strided(4));
  expect_even(fixed(4, 2), oracle::fixed(4, 2));
}

TEST(Sparse, Decodes) {
  for (const int64_t stride : {1, 6, 50})
    for (const int64_t n : {3, 12, 40}) {
      bridge::expect_decoding("sparse", {{"stride", stride}}, n);
      for (const int64_t summary : {1, 2, 6})
        bridge::expect_decoding("sparse", fixed(stride, summary), n);
      bridge::expect_decoding(
          "sparse", {{"as", std::string("lra")}, {"stride", stride}, {"summary", int64_t{2}}}, n);
    }
}

}  // namespace
}  // namespace attn::sparse_test
