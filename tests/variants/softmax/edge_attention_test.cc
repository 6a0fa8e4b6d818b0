// Softmax attention along edges, against the oracle: random graphs with causality and lengths, all
// edges, empty rows, garbage in what is hidden, threads, and lists that are wrong.
#include "variants/softmax/edge_attention.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/visible_pairs.h"
#include "variants/catalog.h"
#include "variants/softmax/softmax_attention.h"

namespace attn::edge_attention_test {
namespace {

using bridge::array_of;

struct Inputs {
  Tensor q, k, v;
};

Inputs inputs(Shape shape, int64_t kv_len, int64_t value_dim) {
  return {bridge::normal(shape, "q"), bridge::normal(shape.with(2, kv_len), "k"),
          bridge::normal(shape.with(2, kv_len).with(3, value_dim), "v")};
}

// Each pair is an edge with the chance `density`; every seventh query has none.
std::shared_ptr<Edges> random_graph(int64_t queries, int64_t kv_len, double density) {
  auto edges = std::make_shared<Edges>();
  Rng random = rng(3, "edges");
  for (int64_t r = 0; r < queries; r++) {
    edges->first.push_back(std::ssize(edges->keys));
    for (int64_t j = 0; j < kv_len; j++)
      if (random.uniform() < density && r % 7 != 3) edges->keys.push_back(static_cast<int32_t>(j));
  }
  edges->first.push_back(std::ssize(edges->keys));
  return edges;
}

bool named(const Edges& edges, int64_t query, int64_t key) {
  const auto at = edges.first.begin() + query;
  return std::count(edges.keys.begin() + at[0], edges.keys.begin() + at[1], key) > 0;
}

oracle::Visibility visibility(const Mask& mask, int64_t q_len) {
  return {mask.causal, mask.kv_lengths, -1, [=](int64_t b, int64_t, int64_t i, int64_t j) {
            return named(*mask.edges, b * q_len + i, j);
          }};
}

// Output and the three gradients.
std::vector<Tensor> run(const Inputs& x, const Mask& mask) {
  const Var q(x.q, true), k(x.k, true), v(x.v, true);
  const Var out = edge_attention(q, k, v, mask);
  const Tensor value = out.value();
  out.backward(bridge::normal(value.shape(), "seed"));
  return {value, q.grad(), k.grad(), v.grad()};
}

void expect_matches(const Inputs& x, const Mask& mask) {
  const oracle::Visibility seen = visibility(mask, x.q.dim(2));
  const std::vector<Tensor> got = run(x, mask);
  const oracle::Array want =
      oracle::softmax_attention(array_of(x.q), array_of(x.k), array_of(x.v), seen);
  EXPECT_LE(bridge::relative_error(got[0], want.x), 40 * kEpsilon);
  bridge::expect_gradients({x.q, x.k, x.v}, {got[1], got[2], got[3]},
                           bridge::normal(got[0].shape(), "seed"),
                           [&](const std::vector<oracle::Array>& a) {
                             return oracle::softmax_attention(a[0], a[1], a[2], seen);
                           });
}

TEST(EdgeAttention, RandomGraphsWithEveryOtherMask) {
  for (const auto& [q_len, kv_len] :
       {std::pair<int64_t, int64_t>{1, 1}, {67, 67}, {5, 40}, {40, 5}, {129, 130}})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true})
        for (const double density : {0.1, 0.8}) {
          SCOPED_TRACE(testing::Message() << q_len << "x" << kv_len << " causal " << causal
                                          << " padded " << padded << " density " << density);
          Mask mask{causal, {}, random_graph(2 * q_len, kv_len, density)};
          if (padded) mask.kv_lengths = {kv_len / 2, kv_len};
          expect_matches(inputs({2, 3, q_len, 5}, kv_len, 4), mask);
        }
}

TEST(EdgeAttention, AllEdgesAreSoftmaxAttention) {
  for (const bool causal : {false, true}) {
    const Inputs x = inputs({2, 2, 70, 8}, 75, 8);
    auto all = std::make_shared<Edges>();
    for (int32_t r = 0; r <= 140; r++) all->first.push_back(r * 75);
    for (int32_t e = 0; e < 140 * 75; e++) all->keys.push_back(e % 75);
    const Tensor got = run(x, {causal, {75, 31}, all})[0];
    const Tensor want =
        softmax_attention(Var(x.q), Var(x.k), Var(x.v), {.causal = causal, .kv_lengths = {75, 31}})
            .value();
    EXPECT_TRUE(bridge::relative_error(got, array_of(want).x) <= 40 * kEpsilon);
  }
}

TEST(EdgeAttention, WhatIsHiddenIsNeverRead) {
  // Queries of either batch entry see even keys below 20 alone; odd ones and padding hold NaN.
  auto edges = std::make_shared<Edges>();
  for (int64_t r = 0; r < 2 * 30; r++) {
    edges->first.push_back(std::ssize(edges->keys));
    for (int32_t j = 0; j < 30; j += 2) edges->keys.push_back(j);
  }
  edges->first.push_back(std::ssize(edges->keys));
  const Mask mask{false, {20, 20}, edges};
  const Inputs x = inputs({2, 2, 30, 4}, 30, 4);
  const Inputs spoilt{x.q, x.k.clone(), x.v.clone()};
  const auto hidden = [](int64_t i) { return i / 4 % 30 % 2 == 1 || i / 4 % 30 >= 20; };
  for (int64_t i = 0; i < x.k.size(); i++)
    if (hidden(i)) spoilt.k[i] = spoilt.v[i] = bridge::kNaN;
  const std::vector<Tensor> clean = run(x, mask), other = run(spoilt, mask);
  for (size_t i = 0; i < clean.size(); i++) EXPECT_TRUE(bridge::same_bits(clean[i], other[i])) << i;
  for (int64_t i = 0; i < x.k.size(); i++) {
    if (!hidden(i)) continue;
    ASSERT_EQ(other[2][i], 0);
    ASSERT_EQ(other[3][i], 0);
  }
}

TEST(EdgeAttention, QueriesWithoutKeysGiveZeros) {
  const Inputs x = inputs({1, 2, 21, 4}, 21, 4);
  const std::vector<Tensor> got = run(x, {false, {}, random_graph(21, 21, 0.3)});
  for (int64_t i = 0; i < x.q.size(); i++) {
    if (i / 4 % 21 % 7 != 3) continue;
    ASSERT_EQ(got[0][i], 0);
    ASSERT_EQ(got[1][i], 0);
  }
  auto none = std::make_shared<Edges>();
  none->first.assign(22, 0);
  for (const Tensor& t : run(x, {false, {}, none}))
    for (const real value : t.values()) ASSERT_EQ(value, 0);
}

TEST(EdgeAttention, AnyNumberOfThreadsGivesTheSameBits) {
  const int before = threads();
  const Inputs x = inputs({1, 3, 300, 8}, 300, 8);
  const Mask mask{true, {}, random_graph(300, 300, 0.1)};
  set_threads(1);
  const std::vector<Tensor> one = run(x, mask);
  for (const int count : {2, 3, 5}) {
    set_threads(count);
    const std::vector<Tensor> many = run(x, mask);
    for (size_t i = 0; i < one.size(); i++)
      EXPECT_TRUE(bridge::same_bits(one[i], many[i])) << count << " threads, " << i;
  }
  set_threads(before);
}

TEST(EdgeAttention, TheTapeHoldsTheEdges) {
  const Inputs x = inputs({1, 1, 9, 4}, 9, 4);
  Mask mask{false, {}, random_graph(9, 9, 0.5)};
  const std::weak_ptr<const Edges> held = mask.edges;
  const Var q(x.q, true);
  const Var out = edge_attention(q, Var(x.k), Var(x.v), mask);
  mask.edges = nullptr;
  EXPECT_FALSE(held.expired());
  out.backward(bridge::normal(x.q.shape(), "seed"));
  EXPECT_TRUE(held.expired());  // released with the tape
}

// Of both passes; the backward makes as many products as there are gradients, and two more.
TEST(EdgeAttention, CountsTheFlopsOfItsEdges) {
  const Inputs x = inputs({2, 3, 20, 8}, 30, 8);
  const Mask mask{.edges = random_graph(2 * 20, 30, 0.3)};
  const auto edges = static_cast<double>(3 * mask.edges->keys.size());
  const Var k(x.k, true);
  for (const bool all : {false, true}) {
    const double before = counters().flops;
    const Var out = edge_attention(Var(x.q, all), k, Var(x.v, all), mask);
    const double forward = counters().flops - before;
    EXPECT_EQ(forward, 2 * 2 * 8 * edges);
    out.backward(Tensor::full(out.shape(), real(1)));
    EXPECT_EQ(counters().flops - before - forward, 2 * 8 * edges * (all ? 5 : 3));
  }
}

TEST(EdgeAttention, NeverHoldsAllPairs) {
  constexpr int64_t kLength = 4096;
  const Inputs x = inputs({1, 1, kLength, 4}, kLength, 4);
  auto ring = std::make_shared<Edges>();
  for (int32_t r = 0; r <= kLength; r++) ring->first.push_back(r);
  for (int32_t r = 0; r < kLength; r++) ring->keys.push_back((r + 1) % kLength);
  reset_memory_peak();
  const int64_t before = memory_use().live_total;
  run(x, {false, {}, ring});
  // Output, seed and three gradients; all pairs would be 64 MiB in float.
  const int64_t tensor = kLength * 4 * static_cast<int64_t>(sizeof(real));
  EXPECT_LT(memory_use().peak_total - before, 8 * tensor);
}

TEST(Edges, AreCheckedBeforeAVariantSeesThem) {
  const auto attention = find_variant("full").build({1, 4, 3, false, 1, {}}, {});
  const Var x(bridge::normal({1, 1, 3, 4}, "q"));
  const auto with = [&](std::vector<int64_t> first, std::vector<int32_t> keys) {
    const Edges edges{std::move(first), std::move(keys)};
    return attention->forward(x, x, x, {false, {}, std::make_shared<const Edges>(edges)});
  };
  EXPECT_NO_THROW(with({0, 1, 1, 3}, {2, 0, 1}));
  EXPECT_THROW(with({0, 1, 3}, {2, 0, 1}), Error);       // two queries instead of three
  EXPECT_THROW(with({}, {}), Error);                     // none at all
  EXPECT_THROW(with({0, 1, 1, 2}, {2, 0, 1}), Error);    // an edge of nobody
  EXPECT_THROW(with({0, 900, 1, 3}, {2, 0, 1}), Error);  // beyond the list
  EXPECT_THROW(with({0, 2, 1, 3}, {0, 2, 1}), Error);    // ends before it begins
  EXPECT_THROW(with({0, 1, 1, 3}, {3, 0, 1}), Error);    // no such key
  EXPECT_THROW(with({0, 1, 1, 3}, {-1, 0, 1}), Error);   // nor this
  EXPECT_THROW(with({0, 1, 1, 3}, {2, 1, 0}), Error);    // not ascending
  EXPECT_THROW(with({0, 1, 1, 3}, {2, 1, 1}), Error);    // twice
  const auto linear = find_variant("linear").build({1, 4, 3, false, 1, {}}, {});
  EXPECT_THROW(linear->forward(x, x, x, {false, {}, random_graph(3, 3, 1)}), Error);
  EXPECT_THROW(edge_attention(x, x, x, {}), Error);
}

TEST(Edges, BothKernelsOfFullHonourThem) {
  const Inputs x = inputs({2, 2, 20, 6}, 20, 6);
  const Mask mask{true, {20, 9}, random_graph(40, 20, 0.4)};
  const NoGrad no_grad;
  const Tensor want = edge_attention(Var(x.q), Var(x.k), Var(x.v), mask).value();
  for (const char* kernel : {"tiled", "materialized"}) {
    const auto full =
        find_variant("full").build({2, 6, 20, true, 1, {}}, {{"kernel", std::string(kernel)}});
    EXPECT_TRUE(bridge::same_bits(full->forward(Var(x.q), Var(x.k), Var(x.v), mask).value(), want));
  }
}

TEST(VisiblePairs, HonourEdges) {
  const Mask mask{true, {9, 4}, random_graph(2 * 9, 9, 0.5)};
  const Tensor pairs = visible_pairs(mask, {2, 3, 9, 4}, {2, 3, 9, 4});
  for (int64_t b = 0, at = 0; b < 2; b++)
    for (int64_t h = 0; h < 3; h++)
      for (int64_t i = 0; i < 9; i++)
        for (int64_t j = 0; j < 9; j++, at++) {
          const bool seen = j < mask.kv_lengths[static_cast<size_t>(b)] && j <= i &&
                            named(*mask.edges, b * 9 + i, j);
          ASSERT_EQ(pairs[at], seen ? 1 : 0);
        }
}

}  // namespace
}  // namespace attn::edge_attention_test
