// Tiled softmax attention at the borders of its tiles and windows, against the oracle; threads, NaN
// in padding, empty rows.
#include "variants/kernels/softmax_attention.h"

#include <gtest/gtest.h>

#include "core/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/kernels/band.h"

namespace attn {
namespace {

using bridge::array_of;

struct Inputs {
  Tensor q, k, v;
};

Inputs inputs(Shape shape, int64_t kv_len, int64_t value_dim) {
  return {bridge::normal(shape, "q"), bridge::normal(shape.with(2, kv_len), "k"),
          bridge::normal(shape.with(2, kv_len).with(3, value_dim), "v")};
}

// Forward and backward with ones as seed; returns output and the three gradients.
std::vector<Tensor> run(const Inputs& x, const SoftmaxOptions& options) {
  const Var q(x.q, true), k(x.k, true), v(x.v, true);
  const Var out = softmax_attention(q, k, v, options);
  const Tensor value = out.value();
  out.backward(bridge::normal(value.shape(), "seed"));
  return {value, q.grad(), k.grad(), v.grad()};
}

void expect_matches(const Inputs& x, const SoftmaxOptions& options, bool gradients) {
  const oracle::Visibility seen{options.causal, options.kv_lengths, options.window};
  const std::vector<Tensor> got = run(x, options);
  const oracle::Array want =
      oracle::softmax_attention(array_of(x.q), array_of(x.k), array_of(x.v), seen, options.scale);
  EXPECT_TRUE(bridge::relative_error(got[0], want.x) <= 40 * kEpsilon)
      << bridge::relative_error(got[0], want.x);
  if (gradients)
    bridge::expect_gradients(
        {x.q, x.k, x.v}, {got[1], got[2], got[3]}, bridge::normal(got[0].shape(), "seed"),
        [&](const std::vector<oracle::Array>& a) {
          return oracle::softmax_attention(a[0], a[1], a[2], seen, options.scale);
        });
}

TEST(SoftmaxAttention, TileBorders) {
  for (const int64_t n : {1, 5, 31, 32, 33, 63, 65, 127, 128, 129, 257})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << n << (causal ? " causal" : ""));
      expect_matches(inputs({1, 1, n, 3}, n, 2), {.causal = causal}, true);
    }
  for (const int64_t kv_len : {511, 512, 513})
    for (const bool causal : {false, true})
      expect_matches(inputs({1, 1, 140, 3}, kv_len, 2), {.causal = causal}, true);
}

TEST(SoftmaxAttention, Windows) {
  for (const int64_t window : {0, 1, 15, 16, 64, 127, 128, 600})
    for (const bool causal : {false, true})
      for (const auto& [q_len, kv_len] :
           {std::pair<int64_t, int64_t>{150, 150}, {40, 560}, {150, 60}}) {
        SCOPED_TRACE(testing::Message() << "window " << window << " of " << q_len << "x" << kv_len
                                        << " causal " << causal);
        expect_matches(inputs({1, 1, q_len, 3}, kv_len, 3), {.causal = causal, .window = window},
                       true);
      }
}

TEST(SoftmaxAttention, LengthsWindowsAndScaleTogether) {
  for (const bool causal : {false, true}) {
    Inputs x = inputs({3, 2, 70, 4}, 90, 4);
    const std::vector<int64_t> lengths = {0, 41, 90};
    bridge::fill_padding(x.k, lengths, bridge::kNaN);
    bridge::fill_padding(x.v, lengths, bridge::kNaN);
    expect_matches(x, {.causal = causal, .kv_lengths = lengths, .window = 20, .scale = 0.3}, true);
    expect_matches(x, {.causal = causal, .kv_lengths = lengths}, true);
  }
}

TEST(SoftmaxAttention, ThreadsDoNotChangeABit) {
  const int before = threads();
  for (const bool causal : {false, true})
    for (const int64_t heads : {1, 3, 4}) {
      const Inputs x = inputs({1, heads, 700, 8}, 700, 8);
      set_threads(1);
      const std::vector<Tensor> one = run(x, {.causal = causal});
      set_threads(2);
      const std::vector<Tensor> two = run(x, {.causal = causal});
      for (size_t i = 0; i < one.size(); ++i)
        EXPECT_TRUE(bridge::same_bits(one[i], two[i])) << heads << " heads, " << i;
    }
  set_threads(before);
}

TEST(SoftmaxAttention, LargeLogitsAndInvisibleNaN) {
  Inputs x = inputs({1, 1, 6, 2}, 6, 2);
  for (const real scale : {real(1e-30), real(1e4)}) {
    Inputs big = x;
    big.q = x.q.clone();
    for (real& value : big.q.values()) value *= scale;
    expect_matches(big, {}, false);
  }
  x.q[2] = bridge::kNaN;  // a NaN the row really sees must show, in that row alone
  const Tensor out = run(x, {})[0];
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(out[i] != out[i], i / 2 == 1) << i;
}

TEST(SoftmaxAttention, ExecutesLittleMoreThanIsVisible) {
  const auto ratio = [](int64_t n, int64_t window, bool causal) {
    const Band band{n, n, n, window, causal ? 0 : window};
    double visible = 0;
    for (int64_t i = 0; i < n; ++i) visible += static_cast<double>(band.end(i) - band.begin(i));
    return executed_pairs(band) / visible;
  };
  EXPECT_DOUBLE_EQ(ratio(1024, -1, false), 1);
  EXPECT_LE(ratio(1024, -1, true), 1.05);
  EXPECT_LE(ratio(4096, 64, false), 1.15);
  EXPECT_LE(ratio(4096, 64, true), 1.25);
  EXPECT_LE(ratio(4096, 512, false), 1.05);
}

TEST(SoftmaxAttention, TiledEqualsMaterialized) {
  const int64_t n = kIsDouble ? 300 : 2048;
  const Inputs x = inputs({1, 1, n, 16}, n, 16);
  for (const bool causal : {false, true}) {
    const std::vector<Tensor> tiled = run(x, {.causal = causal});
    const Var q(x.q, true), k(x.k, true), v(x.v, true);
    const Var out = materialized_attention(q, k, v, {.causal = causal});
    const Tensor value = out.value();
    out.backward(bridge::normal(value.shape(), "seed"));
    const std::vector<Tensor> textbook = {value, q.grad(), k.grad(), v.grad()};
    for (size_t i = 0; i < tiled.size(); ++i)
      EXPECT_TRUE(bridge::relative_error(tiled[i], array_of(textbook[i]).x) <=
                  (kIsDouble ? 1e-13 : 1e-5))
          << i;
  }
}

}  // namespace
}  // namespace attn
