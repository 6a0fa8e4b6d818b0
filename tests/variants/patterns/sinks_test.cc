// sinks against the oracle and its mask, its limits, and decoding from a cache of sinks and window.
#include <gtest/gtest.h>

#include "tests/variants/pattern_check.h"

namespace attn::sinks_test {
namespace {

using bridge::Given;

Given given(int64_t window, int64_t sinks) { return {{"window", window}, {"sinks", sinks}}; }

bridge::Allows seen(int64_t window, int64_t sinks) {
  return bridge::everywhere(
      [=](int64_t i, int64_t j) { return j <= i && (j < sinks || i - j < window); });
}

// Under either mask: the variant is causal always.
TEST(Sinks, FirstPositionsAndAWindow) {
  for (const int64_t window : {1, 6, 20})
    for (const int64_t sinks : {0, 1, 4, 80}) {
      SCOPED_TRACE(testing::Message() << "window " << window << " sinks " << sinks);
      bridge::expect_pattern_everywhere("sinks", given(window, sinks), seen(window, sinks));
    }
}

TEST(Sinks, LongSequencesInSeveralPieces) {
  for (const int64_t sinks : {2, 70})
    bridge::expect_pattern("sinks", given(40, sinks), 530, {true, {530, 490}}, seen(40, sinks));
}

// n <= s + w, and any window of the whole length.
TEST(Sinks, SeesAllThatACausalRowSees) {
  for (const auto& [window, sinks] : {std::pair<int64_t, int64_t>{30, 0}, {20, 10}, {4, 26}})
    bridge::expect_pattern("sinks", given(window, sinks), 30, {true, {}},
                           bridge::everywhere([](int64_t i, int64_t j) { return j <= i; }));
}

TEST(Sinks, AWindowOfOneWithoutSinksIsTheValueItself) {
  const Tensor v = bridge::normal({2, 2, 30, 5}, "v");
  const Tensor out = bridge::build("sinks", given(1, 0), 30, true)
                         ->forward(Var(bridge::normal(v.shape(), "q")),
                                   Var(bridge::normal(v.shape(), "k")), Var(v), {true, {}})
                         .value();
  EXPECT_LE(bridge::relative_error(out, bridge::array_of(v).x), 2 * kEpsilon);
}

// A sink that the window holds too must not be counted twice.
TEST(Sinks, RegressionSinksInTheWindowCountOnce) {
  const Tensor weights =
      bridge::even_weights(*bridge::build("sinks", given(5, 3), 20, true), 20, {true, {}});
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
    for (const int64_t n : {1, 3, 12, 40}) bridge::expect_decoding("sinks", given(6, sinks), n);
}

}  // namespace
}  // namespace attn::sinks_test
