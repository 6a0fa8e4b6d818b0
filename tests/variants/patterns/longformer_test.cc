// longformer against the oracle: windows and global positions, Long Range Arena's lopsided window,
// decoding.
#include <gtest/gtest.h>

#include "tests/variants/pattern_check.h"

namespace attn::longformer_test {
namespace {

using bridge::everywhere;
using bridge::Given;

Given given(int64_t window, int64_t global) {
  return {{"window", window}, {"global_tokens", global}};
}

TEST(Longformer, WindowsAndGlobalPositions) {
  for (const int64_t window : {1, 6, 20})
    for (const int64_t global : {0, 1, 3, 13, 80}) {
      SCOPED_TRACE(testing::Message() << "window " << window << " global " << global);
      bridge::expect_pattern_everywhere(
          "longformer", given(window, global),
          everywhere(oracle::window_and_global(window, window, global)));
    }
}

TEST(Longformer, LongSequencesInSeveralPieces) {
  for (const bool causal : {false, true})
    for (const int64_t global : {2, 70})
      bridge::expect_pattern("longformer", given(40, global), 330, {causal, {330, 290}},
                             everywhere(oracle::window_and_global(40, 40, global)));
}

TEST(Longformer, AsLongRangeArena) {
  bridge::expect_pattern_everywhere("longformer",
                                    {{"window", int64_t{4}}, {"as", std::string("lra")}},
                                    everywhere(oracle::window_and_global(3, 4, 0)));
}

// A global key that the window holds too must not be counted twice.
TEST(Longformer, RegressionGlobalKeysInTheWindowCountOnce) {
  const auto attention = bridge::build("longformer", given(4, 3), 20, false);
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
    for (const int64_t n : {3, 12, 40}) bridge::expect_decoding("longformer", given(6, global), n);
  bridge::expect_decoding("longformer", {{"window", int64_t{6}}, {"as", std::string("lra")}}, 40);
}

}  // namespace
}  // namespace attn::longformer_test
