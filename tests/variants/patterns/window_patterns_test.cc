// Patterns of a window: local, longformer, sinks and the sparse ones.
#include <gtest/gtest.h>

#include "tests/variants/pattern_check.h"

namespace attn::window_patterns_test {
namespace {

// local against the oracle: contiguous blocks and neighbours, Long Range Arena's groups, decoding.

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

// longformer against the oracle: windows and global positions, Long Range Arena's lopsided window,
// decoding.

Given window_and_globals(int64_t window, int64_t global) {
  return {{"window", window}, {"global_tokens", global}};
}

TEST(Longformer, WindowsAndGlobalPositions) {
  for (const int64_t window : {1, 6, 20})
    for (const int64_t global : {0, 1, 3, 13, 80}) {
      SCOPED_TRACE(testing::Message() << "window " << window << " global " << global);
      bridge::expect_pattern_everywhere(
          "longformer", window_and_globals(window, global),
          everywhere(oracle::window_and_global(window, window, global)));
    }
}

TEST(Longformer, LongSequencesInSeveralPieces) {
  for (const bool causal : {false, true})
    for (const int64_t global : {2, 70})
      bridge::expect_pattern("longformer", window_and_globals(40, global), 330,
                             {causal, {330, 290}},
                             everywhere(oracle::window_and_global(40, 40, global)));
}

TEST(Longformer, AsLongRangeArena) {
  bridge::expect_pattern_everywhere("longformer",
                                    {{"window", int64_t{4}}, {"as", std::string("lra")}},
                                    everywhere(oracle::window_and_global(3, 4, 0)));
}

// A global key that the window holds too must not be counted twice.
TEST(Longformer, RegressionGlobalKeysInTheWindowCountOnce) {
  const auto attention = bridge::build("longformer", window_and_globals(4, 3), 20, false);
  const Tensor weights = bridge::even_weights(*attention, 20, {false, {}});
  for (int64_t i = 0; i < 20; ++i) {
    const auto sees = [i](int64_t j) { return oracle::window_and_global(4, 4, 3)(i, j); };
    double count = 0;
    for (int64_t j = 0; j < 20; ++j) count += sees(j);
    for (int64_t j = 0; j < 20; ++j)
      EXPECT_NEAR(static_cast<double>(weights[i * 20 + j]), sees(j) ? 1 / count : 0, 1e-6)
          << i << " sees " << j;
  }
}

TEST(Longformer, Decodes) {
  for (const int64_t global : {0, 1, 5, 30})
    for (const int64_t n : {3, 12, 40})
      bridge::expect_decoding("longformer", window_and_globals(6, global), n);
  bridge::expect_decoding("longformer", {{"window", int64_t{6}}, {"as", std::string("lra")}}, 40);
}

// sinks against the oracle and its mask, its limits, and decoding from a cache of sinks and window.

Given window_and_sinks(int64_t window, int64_t sinks) {
  return {{"window", window}, {"sinks", sinks}};
}

bridge::Allows seen(int64_t window, int64_t sinks) {
  return bridge::everywhere(
      [=](int64_t i, int64_t j) { return j <= i && (j < sinks || i - j < window); });
}

// Under either mask: the variant is causal always.
TEST(Sinks, FirstPositionsAndAWindow) {
  for (const int64_t window : {1, 6, 20})
    for (const int64_t sinks : {0, 1, 4, 80}) {
      SCOPED_TRACE(testing::Message() << "window " << window << " sinks " << sinks);
      bridge::expect_pattern_everywhere("sinks", window_and_sinks(window, sinks),
                                        seen(window, sinks));
    }
}

TEST(Sinks, LongSequencesInSeveralPieces) {
  for (const int64_t sinks : {2, 70})
    bridge::expect_pattern("sinks", window_and_sinks(40, sinks), 530, {true, {530, 490}},
                           seen(40, sinks));
}

// n <= s + w, and any window of the whole length.
TEST(Sinks, SeesAllThatACausalRowSees) {
  for (const auto& [window, sinks] : {std::pair<int64_t, int64_t>{30, 0}, {20, 10}, {4, 26}})
    bridge::expect_pattern("sinks", window_and_sinks(window, sinks), 30, {true, {}},
                           bridge::everywhere([](int64_t i, int64_t j) { return j <= i; }));
}

TEST(Sinks, AWindowOfOneWithoutSinksIsTheValueItself) {
  const Tensor v = bridge::normal({2, 2, 30, 5}, "v");
  const Tensor out = bridge::build("sinks", window_and_sinks(1, 0), 30, true)
                         ->forward(Var(bridge::normal(v.shape(), "q")),
                                   Var(bridge::normal(v.shape(), "k")), Var(v), {true, {}})
                         .value();
  EXPECT_LE(bridge::relative_error(out, bridge::array_of(v).x), 2 * kEpsilon);
}

// A sink that the window holds too must not be counted twice.
TEST(Sinks, RegressionSinksInTheWindowCountOnce) {
  const Tensor weights = bridge::even_weights(
      *bridge::build("sinks", window_and_sinks(5, 3), 20, true), 20, {true, {}});
  for (int64_t i = 0; i < 20; ++i)
    for (int64_t j = 0; j < 20; ++j) {
      const int64_t count = i < 8 ? i + 1 : 8;
      const bool sees = j <= i && (j < 3 || i - j < 5);
      EXPECT_NEAR(static_cast<double>(weights[i * 20 + j]), sees ? 1.0 / double(count) : 0, 1e-6)
          << i << " sees " << j;
    }
}

TEST(Sinks, Decodes) {
  for (const int64_t sinks : {0, 1, 5, 30})
    for (const int64_t n : {1, 3, 12, 40})
      bridge::expect_decoding("sinks", window_and_sinks(6, sinks), n);
}

// sparse against the oracle: strided and fixed patterns, Long Range Arena's, decoding.

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
}  // namespace attn::window_patterns_test
