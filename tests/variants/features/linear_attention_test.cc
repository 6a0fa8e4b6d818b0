// Linear attention at the borders of its chunks and strips, against the oracle; threads,
// stabilisers that must not look ahead.
#include "variants/features/linear_attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/parallel.h"
#include "tests/core/simd/on_every_isa.h"
#include "tests/variants/oracle_bridge.h"

namespace attn::linear_attention_test {
namespace {

using bridge::array_of;

oracle::LogFeatures logarithm() {
  return [](oracle::Index, oracle::Row x) {
    std::vector<double> r;
    for (const double value : x) r.push_back(std::log(value));
    return r;
  };
}

Tensor positive(Shape shape, const char* name) {
  const Tensor t = bridge::normal(shape, name);
  for (real& value : t.values()) value = std::abs(value) + real(0.1);
  return t;
}

struct Inputs {
  Tensor q, k, v;
};

std::vector<Tensor> run(const Inputs& x, const LinearOptions& options) {
  const Var q(x.q, true), k(x.k, true), v(x.v, true);
  const Var out = linear_attention(q, k, v, options);
  const Tensor value = out.value();
  out.backward(bridge::normal(value.shape(), "seed"));
  return {value, q.grad(), k.grad(), v.grad()};
}

void expect_matches(const Inputs& x, const LinearOptions& options) {
  const oracle::Visibility seen{options.causal, options.kv_lengths, -1};
  const auto oracle_of = [&](const std::vector<oracle::Array>& a) {
    return oracle::kernel_attention(a[0], a[1], a[2], seen, logarithm());
  };
  const std::vector<Tensor> got = run(x, options);
  const oracle::Array want = oracle_of({array_of(x.q), array_of(x.k), array_of(x.v)});
  EXPECT_LE(bridge::relative_error(got[0], want.x), 40 * kEpsilon);
  bridge::expect_gradients({x.q, x.k, x.v}, {got[1], got[2], got[3]},
                           bridge::normal(got[0].shape(), "seed"), oracle_of);
}

TEST(LinearAttention, ChunkBorders) {
  for (const bool causal : {false, true})
    for (const auto& [q_len, kv_len] : {std::pair<int64_t, int64_t>{1, 1},
                                        {5, 5},
                                        {23, 23},
                                        {25, 25},
                                        {63, 63},
                                        {64, 64},
                                        {65, 65},
                                        {127, 127},
                                        {128, 128},
                                        {129, 129},
                                        {257, 257},
                                        {40, 300},
                                        {300, 140},
                                        {20, 515}}) {
      SCOPED_TRACE(testing::Message() << q_len << "x" << kv_len << (causal ? " causal" : ""));
      expect_matches({positive({1, 1, q_len, 3}, "q"), positive({1, 1, kv_len, 3}, "k"),
                      bridge::normal({1, 1, kv_len, 2}, "v")},
                     {.causal = causal});
    }
}

TEST(LinearAttention, LengthsWithGarbage) {
  const std::vector<int64_t> lengths = {0, 100, 128, 150};
  for (const bool causal : {false, true}) {
    Inputs x{positive({4, 2, 150, 3}, "q"), positive({4, 2, 150, 3}, "k"),
             bridge::normal({4, 2, 150, 2}, "v")};
    bridge::fill_padding(x.k, lengths, bridge::kNaN);
    bridge::fill_padding(x.v, lengths, bridge::kNaN);
    expect_matches(x, {.causal = causal, .kv_lengths = lengths});
  }
}

// As the variants use it: the map inside, and as an op before.
std::vector<Tensor> mapped(const Inputs& x, const FeatureMap& map, bool causal,
                           const std::vector<int64_t>& lengths = {}) {
  const Var q(x.q, true), k(x.k, true), v(x.v, true);
  const Var out = linear_attention(q, k, v, {.causal = causal, .kv_lengths = lengths, .map = map});
  const Tensor value = out.value();
  out.backward(bridge::normal(value.shape(), "seed"));
  return {value, q.grad(), k.grad(), v.grad()};
}

std::vector<Tensor> mapped_before(const Inputs& x, const FeatureMap& map, bool causal,
                                  const std::vector<int64_t>& lengths) {
  const Var q(x.q, true), k(x.k, true), v(x.v, true);
  const Features queries = features(q, map), keys = features(k, map, lengths);
  const Var out = linear_attention(
      queries.phi, keys.phi, v,
      {.causal = causal, .kv_lengths = lengths, .map = {}, .log_scale = keys.log_scale});
  const Tensor value = out.value();
  out.backward(bridge::normal(value.shape(), "seed"));
  return {value, q.grad(), k.grad(), v.grad()};
}

std::vector<Tensor> favor(const Inputs& x, const Tensor& omega, bool causal) {
  return mapped(x, positive_random(omega, std::pow(static_cast<double>(x.q.dim(3)), -0.25)),
                causal);
}

void expect_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double allowed) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = bridge::relative_error(got[i], array_of(want[i]).x);
    EXPECT_TRUE(error <= allowed) << i << ": " << error;
  }
}

TEST(LinearAttention, MapsInsideEqualFeaturesGivenAtChunkBorders) {
  const Tensor omega = random_directions(2, 10, 4, true, rng(2, "omega"));
  for (const FeatureMap& map :
       {elu_plus_one(), positive_random(omega, 0.7), relu_random(omega, 1e-3)})
    for (const bool causal : {false, true})
      for (const auto& [q_len, kv_len] : {std::pair<int64_t, int64_t>{1, 1},
                                          {5, 5},
                                          {63, 63},
                                          {64, 64},
                                          {65, 65},
                                          {129, 129},
                                          {1, 130},
                                          {70, 200},
                                          {200, 70}})
        for (const std::vector<int64_t>& lengths :
             {std::vector<int64_t>{}, {kv_len, kv_len / 2}, {0, kv_len - 1}}) {
          SCOPED_TRACE(testing::Message() << q_len << "x" << kv_len << (causal ? " causal" : "")
                                          << " map " << static_cast<int>(map.kind));
          Inputs x{bridge::normal({2, 2, q_len, 4}, "q"), bridge::normal({2, 2, kv_len, 4}, "k"),
                   bridge::normal({2, 2, kv_len, 4}, "v")};
          bridge::fill_padding(x.k, lengths, bridge::kNaN);
          bridge::fill_padding(x.v, lengths, bridge::kNaN);
          expect_close(mapped(x, map, causal, lengths), mapped_before(x, map, causal, lengths),
                       100 * kEpsilon);
        }
}

// A single head is cut into pieces for the threads: the same bits for the same threads, and the
// same answer for any number of them.
TEST(LinearAttention, PiecesForThreadsAddUp) {
  const int before = threads();
  const Tensor omega = random_directions(1, 16, 8, true, rng(2, "omega"));
  for (const double scale : {1.0, 3.0})
    for (const FeatureMap& map :
         {elu_plus_one(), positive_random(omega, 0.6), trigonometric_random(omega, 0.6)})
      for (const auto& [q_len, kv_len] :
           {std::pair<int64_t, int64_t>{900, 900}, {70, 300}, {300, 70}, {1, 1}})
        for (const bool causal : {false, true}) {
          SCOPED_TRACE(testing::Message() << q_len << "x" << kv_len << (causal ? " causal" : ""));
          const Inputs x{bridge::normal({1, 1, q_len, 8}, "q", scale),
                         bridge::normal({1, 1, kv_len, 8}, "k", scale),
                         bridge::normal({1, 1, kv_len, 8}, "v")};
          const std::vector<int64_t> lengths = {kv_len - kv_len / 3};
          set_threads(1);
          const std::vector<Tensor> one = mapped(x, map, causal, lengths);
          for (const int count : {2, 3, 5}) {
            set_threads(count);
            const std::vector<Tensor> many = mapped(x, map, causal, lengths);
            const std::vector<Tensor> again = mapped(x, map, causal, lengths);
            expect_close(many, one, 200 * kEpsilon);
            for (size_t i = 0; i < one.size(); ++i)
              EXPECT_TRUE(bridge::same_bits(many[i], again[i])) << i;
          }
        }
  set_threads(before);
}

using LinearAttentionOnEveryIsa = OnEveryIsa;

TEST_F(LinearAttentionOnEveryIsa, Agrees) {
  const Tensor omega = random_directions(1, 21, 5, true, rng(2, "omega"));
  for (const FeatureMap& map :
       {elu_plus_one(), positive_random(omega, 0.6), relu_random(omega, 1e-3)})
    for (const int64_t n : {2, 7, 65, 130})
      for (const bool causal : {false, true}) {
        const Inputs x{bridge::normal({1, 1, n, 5}, "q"), bridge::normal({1, 1, n, 5}, "k"),
                       bridge::normal({1, 1, n, 5}, "v")};
        const std::vector<Tensor> want = mapped(x, map, causal);
        each([&] {
          SCOPED_TRACE(testing::Message() << "length " << n << (causal ? " causal" : ""));
          expect_close(mapped(x, map, causal), want, 100 * kEpsilon);
        });
      }
}

// Without gradients the workspace does not depend on the length.
TEST(LinearAttention, WorkspaceIsBounded) {
  const NoGrad no_grad;
  const Tensor omega = random_directions(1, 32, 8, true, rng(2, "omega"));
  const int before = threads();
  for (const int count : {1, 2})
    for (const bool causal : {false, true}) {
      set_threads(count);
      std::vector<int64_t> bytes;
      for (const int64_t n : {1024, 4096}) {
        const Var x(bridge::normal({1, 1, n, 8}, "x"));
        reset_memory_peak();
        linear_attention(x, x, x, {.causal = causal, .map = positive_random(omega, 0.6)});
        bytes.push_back(memory_use().peak[static_cast<int>(Purpose::workspace)]);
      }
      EXPECT_EQ(bytes[0], bytes[1]);
    }
  set_threads(before);
}

TEST(LinearAttention, FutureKeysLeavePastRowsAlone) {
  constexpr int64_t n = 300, d = 4;
  const Tensor omega = random_directions(1, 16, d, true, rng(2, "omega"));
  const Inputs x{bridge::normal({1, 1, n, d}, "q"), bridge::normal({1, 1, n, d}, "k"),
                 bridge::normal({1, 1, n, d}, "v")};
  const Tensor want = favor(x, omega, true)[0];
  for (const int64_t t : {0, 23, 24, 63, 64, 127, 128, 200, 298})
    for (const real factor : {real(3), real(1e3)}) {
      const Inputs moved{x.q.clone(), x.k.clone(), x.v.clone()};
      for (int64_t i = (t + 1) * d; i < n * d; ++i)
        moved.q[i] *= factor, moved.k[i] *= factor, moved.v[i] *= factor;
      const Tensor got = favor(moved, omega, true)[0];
      for (int64_t i = 0; i < (t + 1) * d; ++i)
        ASSERT_TRUE(std::abs(got[i] - want[i]) <= 4 * kEpsilon * (1 + std::abs(want[i])))
            << t << " times " << factor;
    }
}

TEST(LinearAttention, StabiliserMatchesOracleAtEveryScale) {
  constexpr int64_t n = 150, d = 4;
  const Tensor omega = random_directions(1, 16, d, true, rng(2, "omega"));
  for (const double scale : {0.1, 1.0, 6.0})
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(testing::Message() << "scale " << scale << (causal ? " causal" : ""));
      const Inputs x{bridge::normal({1, 1, n, d}, "q", scale),
                     bridge::normal({1, 1, n, d}, "k", scale), bridge::normal({1, 1, n, d}, "v")};
      const auto oracle_of = [&](const std::vector<oracle::Array>& a) {
        const oracle::Array directions = array_of(omega);
        return oracle::kernel_attention(a[0], a[1], a[2], {causal, {}, -1},
                                        oracle::positive_random(directions));
      };
      const std::vector<Tensor> got = favor(x, omega, causal);
      const oracle::Array want = oracle_of({array_of(x.q), array_of(x.k), array_of(x.v)});
      // Exponents of size scale² carry an absolute error of that many epsilons into the weights.
      EXPECT_LE(bridge::relative_error(got[0], want.x), 60 * (1 + scale * scale) * kEpsilon);
      if (scale <= 1)
        bridge::expect_gradients({x.q, x.k, x.v}, {got[1], got[2], got[3]},
                                 bridge::normal(got[0].shape(), "seed"), oracle_of);
    }
}

// The scale of a key multiplies its features, whether it rises or falls from chunk to chunk.
TEST(LinearAttention, ScalesOfManyChunksMultiplyTheKeys) {
  constexpr int64_t n = 600, m = 6;
  const double levels[] = {-1, -3, 0, -2, 2};  // of 128 keys each
  const Inputs x{positive({1, 1, n, m}, "q"), positive({1, 1, n, m}, "k"),
                 bridge::normal({1, 1, n, 3}, "v")};
  const Inputs scaled{x.q, x.k.clone(), x.v};
  const Tensor log_scale({1, 1, n});
  for (int64_t i = 0; i < n * m; ++i) {
    log_scale[i / m] = real(levels[i / m / 128]);
    scaled.k[i] *= std::exp(log_scale[i / m]);
  }
  for (const bool causal : {false, true}) {
    LinearOptions options{.causal = causal, .kv_lengths = {}, .log_scale = {}};
    const std::vector<Tensor> want = run(scaled, options);
    options.log_scale = log_scale;
    const std::vector<Tensor> got = run(x, options);
    for (int64_t i = 0; i < n * m; ++i) want[2][i] *= std::exp(log_scale[i / m]);
    for (size_t which = 0; which < got.size(); ++which)
      EXPECT_TRUE(bridge::relative_error(got[which], array_of(want[which]).x) <= 200 * kEpsilon)
          << which << (causal ? " causal " : " ")
          << bridge::relative_error(got[which], array_of(want[which]).x);
  }
}

TEST(LinearAttention, RefusesScalesThatDoNotFit) {
  const Var q(positive({1, 2, 3, 4}, "q")), k(positive({1, 2, 5, 4}, "k"));
  for (const Shape& shape : {Shape{1, 2, 3}, Shape{2, 5}, Shape{1, 5, 2}, Shape{1, 2, 5, 1}}) {
    LinearOptions options;
    options.log_scale = Tensor::zeros(shape);
    EXPECT_THROW(linear_attention(q, k, k, options), Error) << shape.str();
  }
  LinearOptions options;
  options.log_scale = Tensor::zeros({1, 2, 5});
  EXPECT_NO_THROW(linear_attention(q, k, k, options));
}

TEST(LinearAttention, HugeInputsStayFinite) {
  constexpr int64_t n = 140, d = 8;
  const Tensor omega = random_directions(1, 32, d, true, rng(2, "omega"));
  for (const double scale : {30.0, 1e3})
    for (const bool causal : {false, true})
      for (const Tensor& t :
           favor({bridge::normal({1, 1, n, d}, "q", scale),
                  bridge::normal({1, 1, n, d}, "k", scale), bridge::normal({1, 1, n, d}, "v")},
                 omega, causal))
        for (const real value : t.values()) ASSERT_TRUE(std::isfinite(value)) << scale;
}

// Prefix sums over a long sequence, against sums in double.
TEST(LinearAttention, LongSumsKeepTheirDigits) {
  const int64_t n = kIsDouble ? 2048 : 65536;
  const Inputs x{positive({1, 1, n, 4}, "q"), positive({1, 1, n, 4}, "k"),
                 positive({1, 1, n, 1}, "v")};
  const NoGrad no_grad;
  const Tensor got = linear_attention(Var(x.q), Var(x.k), Var(x.v), {.causal = true}).value();
  double sum[4] = {}, normalizer[4] = {}, worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    double top = 0, bottom = 0;
    for (int64_t f = 0; f < 4; ++f) {
      const double phi = static_cast<double>(x.k[i * 4 + f]),
                   query = static_cast<double>(x.q[i * 4 + f]);
      sum[f] += phi * static_cast<double>(x.v[i]), normalizer[f] += phi;
      top += query * sum[f], bottom += query * normalizer[f];
    }
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) * bottom / top - 1));
  }
  EXPECT_LE(worst, 64 * kEpsilon);  // 512 chunks, errors of random sign
}

}  // namespace
}  // namespace attn::linear_attention_test
