// The fused softmax attention, and the layout in which it reads and writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/softmax/band.h"
#include "variants/softmax/forward_layout.h"
#include "variants/softmax/materialized_attention.h"
#include "variants/softmax/softmax_attention.h"

namespace attn::softmax_attention_test {
namespace {

// Tiled softmax attention at the borders of its tiles and windows, against the oracle; threads, NaN
// in padding, empty rows.

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

oracle::Visibility visibility(const Inputs& x, const SoftmaxOptions& options) {
  oracle::Visibility seen{options.causal, options.kv_lengths, options.window, {}};
  if (!options.pattern) return seen;
  const BlockPattern pattern = *options.pattern;
  const int64_t blocks = (x.q.dim(2) + pattern.size - 1) / pattern.size;
  const bool shared = static_cast<int64_t>(pattern.begin.size()) == blocks + 1;
  seen.allows = [=](int64_t, int64_t h, int64_t i, int64_t j) {
    const auto list = static_cast<size_t>((shared ? 0 : h * blocks) + i / pattern.size);
    const auto at = [&](int64_t n) { return pattern.keys.begin() + n; };
    return std::count(at(pattern.begin[list]), at(pattern.begin[list + 1]), j / pattern.size) > 0;
  };
  return seen;
}

void expect_matches(const Inputs& x, const SoftmaxOptions& options, bool gradients) {
  const oracle::Visibility seen = visibility(x, options);
  const std::vector<Tensor> got = run(x, options);
  const oracle::Array want =
      oracle::softmax_attention(array_of(x.q), array_of(x.k), array_of(x.v), seen, options.scale);
  EXPECT_LE(bridge::relative_error(got[0], want.x), 40 * kEpsilon);
  if (gradients)
    bridge::expect_gradients(
        {x.q, x.k, x.v}, {got[1], got[2], got[3]}, bridge::normal(got[0].shape(), "seed"),
        [&](const std::vector<oracle::Array>& a) {
          return oracle::softmax_attention(a[0], a[1], a[2], seen, options.scale);
        });
}

TEST(SoftmaxAttention, TileBorders) {
  for (const int64_t n : {1, 5, 31, 32, 33, 63, 65, 127, 128, 129, 191, 193, 257})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << n << (causal ? " causal" : ""));
      expect_matches(inputs({1, 1, n, 3}, n, 2), {.causal = causal}, true);
    }
  for (const int64_t kv_len : {255, 257, 383, 384, 385, 769})  // around a piece of keys
    for (const bool causal : {false, true})
      expect_matches(inputs({1, 1, 140, 3}, kv_len, 2), {.causal = causal}, true);
  for (const int64_t q_len : {47, 48, 49, 97, 100})  // around a strip of queries
    expect_matches(inputs({1, 1, q_len, 3}, 385, 2), {}, true);
  expect_matches(inputs({1, 1, 50, 512}, 70, 2), {}, true);
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

// Windows so narrow that each strip takes its keys at once, in tiles of every size, and the first
// ones that are wider.
TEST(SoftmaxAttention, NarrowWindowsInLongTiles) {
  const int before = threads();
  for (const int threads_now : {1, 2}) {
    set_threads(threads_now);
    for (const int64_t window : {1, 64, 154, 155, 308, 309})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(testing::Message() << "window " << window << " causal " << causal);
        expect_matches(inputs({1, 1, 1100, 3}, 1100, 3), {.causal = causal, .window = window},
                       false);
        expect_matches(inputs({1, 1, 600, 3}, 900, 3), {.causal = causal, .window = window}, false);
      }
  }
  set_threads(before);
  Inputs x = inputs({2, 1, 700, 3}, 700, 3);
  const std::vector<int64_t> lengths = {0, 450};
  bridge::fill_padding(x.k, lengths, bridge::kNaN);
  bridge::fill_padding(x.v, lengths, bridge::kNaN);
  expect_matches(x, {.kv_lengths = lengths, .window = 40}, true);
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

TEST(SoftmaxAttention, SameThreadsSameBits) {
  const int before = threads();
  for (const bool causal : {false, true})
    for (const int64_t heads : {1, 3, 4}) {
      const Inputs x = inputs({1, heads, 700, 8}, 700, 8);
      set_threads(1);
      const std::vector<Tensor> one = run(x, {.causal = causal});
      set_threads(2);
      const std::vector<Tensor> two = run(x, {.causal = causal}),
                                again = run(x, {.causal = causal});
      EXPECT_TRUE(bridge::same_bits(one[0], two[0]))
          << "outputs depend on threads only where keys are dealt to parts";
      for (size_t i = 0; i < one.size(); ++i) {
        EXPECT_TRUE(bridge::same_bits(two[i], again[i])) << heads << " heads, " << i;
        EXPECT_TRUE(bridge::relative_error(two[i], array_of(one[i]).x) <= 20 * kEpsilon);
      }
    }
  set_threads(before);
}

TEST(SoftmaxAttention, GradientsOfFewKeysAreSummedOverThreads) {
  const int before = threads();
  for (const int threads_now : {2, 3, 5}) {
    set_threads(threads_now);
    for (const int64_t kv_len : {1, 7, 70, 150})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(testing::Message() << threads_now << " threads, " << kv_len << " keys");
        expect_matches(inputs({1, 1, 300, 3}, kv_len, 2), {.causal = causal}, true);
      }
    Inputs x = inputs({3, 1, 200, 4}, 60, 2);
    const std::vector<int64_t> lengths = {0, 17, 60};
    bridge::fill_padding(x.k, lengths, bridge::kNaN);
    bridge::fill_padding(x.v, lengths, bridge::kNaN);
    expect_matches(x, {.kv_lengths = lengths, .window = 30}, true);
  }
  set_threads(before);
}

TEST(SoftmaxAttention, FewQueriesShareTheirKeysOverThreads) {
  const int before = threads();
  for (const int threads_now : {2, 5, 16}) {
    set_threads(threads_now);
    for (const int64_t q_len : {1, 7, 200})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(testing::Message() << threads_now << " threads, " << q_len << " queries");
        expect_matches(inputs({1, 1, q_len, 5}, 1100, 3), {.causal = causal}, false);
      }
    Inputs x = inputs({2, 1, 3, 4}, 600, 4);
    bridge::fill_padding(x.k, {0, 300}, bridge::kNaN);
    bridge::fill_padding(x.v, {0, 300}, bridge::kNaN);
    expect_matches(x, {.kv_lengths = {0, 300}}, true);
  }
  set_threads(before);
}

// Every query block sees block 0, its own and one more; with `heads` lists the third differs.
std::shared_ptr<const BlockPattern> some_blocks(int64_t size, int64_t blocks, int64_t heads) {
  BlockPattern pattern{.size = size};
  pattern.begin.push_back(0);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t b = 0; b < blocks; ++b) {
      std::set<int64_t> seen = {0, b, (3 * b + 5 + h) % blocks};
      if (b == 2) seen.clear();  // a block that sees nothing
      pattern.keys.insert(pattern.keys.end(), seen.begin(), seen.end());
      pattern.begin.push_back(static_cast<int64_t>(pattern.keys.size()));
    }
  return std::make_shared<const BlockPattern>(pattern);
}

TEST(SoftmaxAttention, BlockPatterns) {
  for (const int64_t size : {1, 16, 64, 100, 300})
    for (const int64_t lists : {1, 2})
      for (const bool causal : {false, true}) {
        const int64_t n = size == 1 ? 40 : 3 * size + size / 2 + 1, blocks = (n + size - 1) / size;
        SCOPED_TRACE(testing::Message() << "blocks of " << size << ", causal " << causal);
        Inputs x = inputs({2, 2, n, 3}, n, 2);
        const std::vector<int64_t> lengths = {n, n - n / 3};
        bridge::fill_padding(x.k, lengths, bridge::kNaN);
        bridge::fill_padding(x.v, lengths, bridge::kNaN);
        expect_matches(
            x,
            {.causal = causal, .kv_lengths = lengths, .pattern = some_blocks(size, blocks, lists)},
            true);
      }
}

TEST(SoftmaxAttention, RefusesPatternsThatDoNotFit) {
  const Inputs x = inputs({1, 2, 40, 3}, 40, 3);
  const auto run_with = [&](int64_t size, IndexList begin, IndexList keys) {
    SoftmaxOptions options;
    options.pattern =
        std::make_shared<const BlockPattern>(BlockPattern{size, std::move(begin), std::move(keys)});
    softmax_attention(Var(x.q), Var(x.k), Var(x.v), options);
  };
  EXPECT_NO_THROW(run_with(20, {0, 1, 3}, {0, 0, 1}));
  EXPECT_NO_THROW(run_with(20, {0, 1, 3, 3, 4}, {0, 0, 1, 1}));  // a list a head
  EXPECT_THROW(run_with(0, {0, 1, 3}, {0, 0, 1}), Error);
  EXPECT_THROW(run_with(20, {}, {}), Error);
  EXPECT_THROW(run_with(20, {0, 3}, {0, 0, 1}), Error);           // lists too few
  EXPECT_THROW(run_with(20, {0, 1, 2, 3}, {0, 0, 1}), Error);     // for neither
  EXPECT_THROW(run_with(20, {1, 2, 3}, {0, 0, 1}), Error);        // begins late
  EXPECT_THROW(run_with(20, {0, 1, 2}, {0, 0, 1}), Error);        // ends early
  EXPECT_THROW(run_with(20, {0, 1, 4}, {0, 0, 1}), Error);        // beyond the keys
  EXPECT_THROW(run_with(20, {0, 5, 1, 2, 3}, {0, 0, 1}), Error);  // runs back
  EXPECT_THROW(run_with(20, {0, 1, 3}, {0, 1, 0}), Error);        // descends
  EXPECT_THROW(run_with(20, {0, 1, 3}, {0, 1, 1}), Error);        // twice
  EXPECT_THROW(run_with(20, {0, 1, 3}, {-1, 0, 1}), Error);
  SoftmaxOptions options{.pattern = some_blocks(20, 2, 1)};
  EXPECT_THROW(materialized_attention(Var(x.q), Var(x.k), Var(x.v), options), Error);
}

// One head on several threads, keys in no more than one block of the usual size: shared all the
// same.
TEST(SoftmaxAttention, FewKeysShareTheirBackwardOverThreads) {
  const int before = threads();
  for (const int threads_now : {2, 4, 7}) {
    set_threads(threads_now);
    for (const int64_t kv_len : {1, 63, 64, 65, 130, 200, 256, 400})
      for (const bool causal : {false, true}) {
        SCOPED_TRACE(testing::Message() << threads_now << " threads, " << kv_len << " keys");
        expect_matches(inputs({1, 1, 110, 5}, kv_len, 3), {.causal = causal}, true);
      }
    expect_matches(inputs({3, 1, 70, 5}, 150, 3), {.kv_lengths = {0, 70, 150}, .window = 30}, true);
  }
  set_threads(before);
}

TEST(SoftmaxAttention, EveryWidthAndHead) {
  for (const int64_t dim : {1, 2, 15, 16, 17, 31, 33, 64, 65, 80, 128, 130})
    for (const int64_t value_dim : {int64_t{1}, dim}) {
      SCOPED_TRACE(testing::Message() << dim << " and " << value_dim);
      expect_matches(inputs({1, 2, 20, dim}, 37, value_dim), {}, true);
    }
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
    return executed_pairs(band, nullptr, 0, QueryTiles(n, nullptr, 192, 6), 6) / visible;
  };
  EXPECT_DOUBLE_EQ(ratio(1024, -1, false), 1);
  EXPECT_LE(ratio(1024, -1, true), 1.01);
  EXPECT_LE(ratio(4096, 64, false), 1.05);
  EXPECT_LE(ratio(4096, 64, true), 1.09);
  EXPECT_LE(ratio(4096, 512, false), 1.01);
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

// The tiles of the softmax forward by the size of the second-level cache.

int64_t most(int64_t dim, int64_t value_dim, int64_t cache_kib) {
  return ForwardDivision::most_rows({.dim = dim, .value_dim = value_dim}, cache_kib << 10);
}

TEST(ForwardLayout, QueriesAndOutputsOfATileTakeHalfTheCache) {
  const int64_t size = sizeof(real);
  EXPECT_EQ(most(64, 64, 256) * 128 * size, 128 << 10);
  EXPECT_EQ(most(64, 192, 1024) * 256 * size, 512 << 10);
  EXPECT_EQ(most(1, 1, 2048), 1024);      // the most of all
  EXPECT_EQ(most(1024, 1024, 256), 128);  // the least
  EXPECT_EQ(most(0, 0, 512), 1024);
}

TEST(ForwardLayout, ANarrowWindowHasRoomForTwelveRowsOfLogits) {
  const SoftmaxProblem wide{
      .batch = 1, .heads = 1, .q_len = 4096, .kv_len = 4096, .dim = 64, .value_dim = 64};
  SoftmaxProblem narrow = wide;
  narrow.left = narrow.right = 64;
  const auto logits = [](const SoftmaxProblem& p) {
    const ForwardLayout layout(p, ForwardDivision(p).tiles);
    return layout.total - layout.scores;
  };
  EXPECT_EQ(logits(wide), kForwardWideStrip * kForwardPiece);
  EXPECT_EQ(logits(narrow), 12 * kNarrowPiece);
}

}  // namespace
}  // namespace attn::softmax_attention_test
