// Patterns of edges and of levels: graph and hierarchical.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "tests/variants/pattern_check.h"
#include "tests/variants/textbook_cases.h"
#include "variants/patterns/random_graph.h"

namespace attn::graph_test {
namespace {

// graph: a complete graph is softmax attention, self-loops alone copy the values, the edges of a
// window are `truncated`; and its own random graph: its degree, no edge twice, each prefix alike.

struct Inputs {
  Tensor q = bridge::normal({2, 2, 41, 6}, "q"), k = bridge::normal({2, 2, 41, 6}, "k"),
         v = bridge::normal({2, 2, 41, 6}, "v");
};

Tensor answer(const std::string& name, const std::map<std::string, ParamValue>& params,
              const Inputs& x, const Mask& mask) {
  const NoGrad no_grad;
  const auto attention = find_variant(name).build({2, 6, 41, mask.causal, 1, {}}, params);
  return attention->forward(Var(x.q), Var(x.k), Var(x.v), mask).value();
}

std::vector<Mask> masks() { return {{false, {}}, {true, {}}, {false, {41, 17}}, {true, {41, 17}}}; }

void expect_near(const Tensor& got, const Tensor& want) {
  EXPECT_LE(bridge::relative_error(got, bridge::array_of(want).x), 40 * kEpsilon);
}

TEST(Graph, OfEveryEdgeIsSoftmaxAttention) {
  const Inputs x;
  for (const Mask& mask : masks())
    expect_near(answer("graph", {{"degree", int64_t{41}}}, x, mask), answer("full", {}, x, mask));
}

TEST(Graph, OfSelfLoopsCopiesTheValues) {
  const Inputs x;
  for (const bool causal : {false, true})
    EXPECT_TRUE(bridge::same_bits(answer("graph", {{"degree", int64_t{0}}}, x, {causal, {}}), x.v));
}

TEST(Graph, OfAWindowsEdgesIsTruncated) {
  const Inputs x;
  for (Mask mask : masks()) {
    const Tensor want = answer("truncated", {{"window", int64_t{3}}}, x, mask);
    auto edges = std::make_shared<Edges>();
    for (int32_t r = 0; r < 2 * 41; ++r) {
      edges->first.push_back(std::ssize(edges->keys));
      for (int32_t j = std::max(0, r % 41 - 3); j <= std::min(40, r % 41 + 3); ++j)
        edges->keys.push_back(j);
    }
    edges->first.push_back(std::ssize(edges->keys));
    mask.edges = edges;
    expect_near(answer("graph", {}, x, mask), want);
  }
}

TEST(Graph, OfItsOwnEqualsTheOracleAlongTheSameEdges) {
  const Inputs x;
  for (const Mask& mask : masks()) {
    const Edges edges = random_graph({2, 2, 41, 41, 6, mask.causal}, 8, 1);
    const oracle::Visibility seen{
        mask.causal, mask.kv_lengths, -1, [&](int64_t b, int64_t, int64_t i, int64_t j) {
          const auto at = edges.first.begin() + b * 41 + i;
          return std::count(edges.keys.begin() + at[0], edges.keys.begin() + at[1], j) > 0;
        }};
    const oracle::Array want = oracle::softmax_attention(
        bridge::array_of(x.q), bridge::array_of(x.k), bridge::array_of(x.v), seen);
    EXPECT_TRUE(bridge::relative_error(answer("graph", {}, x, mask), want.x) <= 40 * kEpsilon);
  }
}

TEST(Graph, DecodesWhatTheForwardSays) {
  for (const int64_t degree : {0, 5, 8, 200})
    for (const int64_t length : {1, 37, 71})
      for (const int64_t prefill : {int64_t{0}, length / 2})
        textbook_cases::expect_decoding("graph", {{"degree", degree}}, 1, length, prefill);
}

// What a graph drawn for the whole length gets wrong: room for more positions changes no neighbour.
TEST(Graph, RegressionRoomForMorePositionsChangesNoStep) {
  const Tensor x = bridge::normal({33, 6}, "x");
  const auto decoded = [&](int64_t capacity) {
    const auto decoder =
        find_variant("graph").build({1, 6, capacity, true, 1, {}}, {})->decoder(1, capacity);
    const Tensor out({1, 1, 1, 6});
    for (int64_t i = 0; i < 33; ++i) {
      const Tensor row({1, 1, 1, 6});
      std::copy_n(x.data() + i * 6, 6, row.data());
      decoder->step(row, row, row, out);
    }
    return out;
  };
  EXPECT_TRUE(bridge::same_bits(decoded(33), decoded(500)));
}

// An edge twice would weigh double.
TEST(RandomGraph, RegressionHasNoEdgeTwiceAndEachNodeItself) {
  const Edges edges = random_graph({1, 1, 500, 500, 1, false}, 5, 1);
  std::set<std::pair<int32_t, int32_t>> all;
  for (int32_t r = 0; r < 500; ++r) {
    const auto at = edges.first.begin() + r;
    for (int64_t e = at[0]; e < at[1]; ++e) {
      if (e > at[0]) {
        ASSERT_LT(edges.keys[static_cast<size_t>(e - 1)], edges.keys[static_cast<size_t>(e)]);
      }
      all.emplace(r, edges.keys[static_cast<size_t>(e)]);
    }
    EXPECT_TRUE(all.count({r, r}));
  }
  for (const auto& [a, b] : all) EXPECT_TRUE(all.count({b, a})) << a << " " << b;
  // Each of positions 5 on draws 5, the ones before fewer.
  EXPECT_EQ(std::ssize(all), 500 + 2 * (495 * 5 + 10));
}

TEST(RandomGraph, EachPrefixIsTheGraphOfThatLength) {
  for (const bool causal : {false, true}) {
    const Edges whole = random_graph({1, 1, 90, 90, 1, causal}, 4, 1),
                part = random_graph({1, 1, 33, 33, 1, causal}, 4, 1);
    for (size_t r = 0; r < 33; ++r) {
      std::vector<int32_t> kept,
          want(part.keys.begin() + part.first[r], part.keys.begin() + part.first[r + 1]);
      for (int64_t e = whole.first[r]; e < whole.first[r + 1]; ++e)
        if (whole.keys[static_cast<size_t>(e)] < 33)
          kept.push_back(whole.keys[static_cast<size_t>(e)]);
      EXPECT_EQ(kept, want) << r;
    }
  }
}

// hierarchical against an oracle of its own, which descends from the whole sequence to neighbouring
// blocks; its limits; and that every row sums to one.

using bridge::Given;

struct Setup {
  int64_t block;
  Mask mask;

  int64_t valid(int64_t b, int64_t n) const {
    return mask.kv_lengths.empty() ? n : mask.kv_lengths[static_cast<size_t>(b)];
  }
};

std::vector<double> mean(const oracle::Array& x, int64_t b, int64_t h, int64_t begin, int64_t end) {
  std::vector<double> sum(static_cast<size_t>(x.dim));
  for (int64_t i = begin; i < end; ++i)
    for (int64_t c = 0; c < x.dim; ++c)
      sum[static_cast<size_t>(c)] += x.at(b, h, i, c) / static_cast<double>(end - begin);
  return sum;
}

oracle::Array expected(const std::vector<oracle::Array>& x, const Setup& s) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2];
  oracle::Array out(q.batch, q.heads, q.len, q.dim);
  const bool causal = s.mask.causal;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h) {
      const int64_t valid = s.valid(b, q.len);
      for (int64_t i = 0; i < (causal ? q.len : valid); ++i) {
        double total = 0;
        std::vector<double> sum(static_cast<size_t>(q.dim));
        const auto add = [&](const std::vector<double>& query, int64_t begin, int64_t end) {
          const auto key = mean(k, b, h, begin, end), value = mean(v, b, h, begin, end);
          double logit = 0;
          for (size_t c = 0; c < key.size(); ++c) logit += query[c] * key[c];
          const double weight = static_cast<double>(end - begin) *
                                std::exp(logit / std::sqrt(static_cast<double>(q.dim)));
          total += weight;
          for (size_t c = 0; c < key.size(); ++c) sum[c] += weight * value[c];
        };
        // Keys of [begin, begin + span): one by one next to i, halved until they are, or means.
        const std::function<void(int64_t, int64_t)> visit = [&](int64_t begin, int64_t span) {
          const int64_t ahead = i / span - begin / span, end = std::min(begin + span, valid);
          if (ahead >= -1 && ahead <= 1 && span > s.block) {
            visit(begin, span / 2);
            visit(begin + span / 2, span / 2);
          } else if (ahead >= -1 && ahead <= 1) {
            for (int64_t j = begin; j < end; ++j)
              if (!causal || j <= i) add(mean(q, b, h, i, i + 1), j, j + 1);
          } else if (!causal || ahead > 0) {
            const int64_t size = 2 * span / s.block, cell = i / size * size;
            for (int64_t j = begin; j < end; j += size)
              add(mean(q, b, h, cell, causal ? cell + 1 : std::min(cell + size, valid)), j,
                  std::min(j + size, valid));
          }
        };
        int64_t all = s.block;
        while (all < q.len) all *= 2;
        visit(0, all);
        for (int64_t c = 0; total > 0 && c < q.dim; ++c)
          out.at(b, h, i, c) = sum[static_cast<size_t>(c)] / total;
      }
    }
  return out;
}

void expect_as_oracle(const Setup& s, int64_t n, int64_t dim = 5) {
  SCOPED_TRACE(testing::Message() << n << " block " << s.block << (s.mask.causal ? " causal" : "")
                                  << (s.mask.kv_lengths.empty() ? "" : " padded"));
  const Shape shape{2, 2, n, dim};
  const std::vector<Tensor> x = {bridge::normal(shape, "q"), bridge::normal(shape, "k"),
                                 bridge::normal(shape, "v")};
  for (const size_t which : {1u, 2u})
    bridge::fill_padding(x[which], s.mask.kv_lengths, bridge::kNaN);
  const Var q(x[0], true), k(x[1], true), v(x[2], true);
  const Var out = bridge::build("hierarchical", {{"block", s.block}}, n, s.mask.causal, 3, dim)
                      ->forward(q, k, v, s.mask);
  const bridge::Twin twin = [&](const std::vector<oracle::Array>& inputs) {
    return expected(inputs, s);
  };
  const oracle::Array want =
      twin({bridge::array_of(x[0]), bridge::array_of(x[1]), bridge::array_of(x[2])});
  EXPECT_LE(bridge::relative_error(out.value(), want.x), 40 * kEpsilon);
  const Tensor seed = bridge::normal(shape, "seed");
  out.backward(seed);
  bridge::expect_gradients(x, {q.grad(), k.grad(), v.grad()}, seed, twin);
}

TEST(Hierarchical, MeansOfFarBlocks) {
  for (const int64_t n : {1, 7, 16, 17, 32, 37})
    for (const bool causal : {false, true})
      for (const int64_t block : {2, 4, 16}) {
        expect_as_oracle({block, {causal, {}}}, n);
        expect_as_oracle({block, {causal, {n / 2, n - n / 8}}}, n);
        expect_as_oracle({block, {causal, {0, n}}}, n);
      }
}

TEST(Hierarchical, TwoBlocksAreSoftmaxAttention) {
  for (const int64_t n : {1, 31, 64})
    for (const bool causal : {false, true})
      bridge::expect_pattern("hierarchical", {{"block", (n + 3) / 4 * 2}}, n, {causal, {}},
                             bridge::everywhere([](int64_t, int64_t) { return true; }));
}

// Where queries and keys are equal on the runs that are averaged, means lose nothing.
TEST(Hierarchical, RunsOfEqualRowsGiveSoftmaxAttention) {
  for (const bool causal : {false, true}) {
    const Shape shape{2, 2, 64, 5};
    const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
                 v = bridge::normal(shape, "v");
    for (const Tensor& x : {q, k})
      for (int64_t row = 0; row < 4 * 64; ++row)
        std::copy_n(x.data() + row / 8 * 8 * 5, 5, x.data() + row * 5);
    const NoGrad no_grad;
    const Tensor out = bridge::build("hierarchical", {{"block", int64_t{4}}}, 64, causal)
                           ->forward(Var(q), Var(k), Var(v), {causal, {}})
                           .value();
    const oracle::Array want = oracle::softmax_attention(bridge::array_of(q), bridge::array_of(k),
                                                         bridge::array_of(v), {causal});
    EXPECT_LE(bridge::relative_error(out, want.x), 40 * kEpsilon);
  }
}

// With equal logits each key has the same weight: a mean counts as often as it has positions, and
// no pair of positions is left out.
TEST(Hierarchical, RegressionAMeanCountsAllItsPositions) {
  for (const int64_t n : {32, 37})
    for (const bool causal : {false, true}) {
      const auto attention = bridge::build("hierarchical", {{"block", int64_t{2}}}, n, causal);
      const Tensor weights = bridge::even_weights(*attention, n, {causal, {}});
      for (int64_t at = 0; at < weights.size(); ++at) {
        const int64_t i = at / n % n, j = at % n;
        const double seen = causal ? static_cast<double>(i + 1) : static_cast<double>(n);
        EXPECT_NEAR(static_cast<double>(weights[at]), causal && j > i ? 0 : 1 / seen, 1e-6)
            << i << " sees " << j;
      }
    }
}

// Weights of e^(-(i - j)²/16): blocks that see one neighbour alone, the other one of a pair, err by
// 0.65 in the two rows in the middle.
TEST(Hierarchical, WeightsThatFallWithDistanceLoseLittle) {
  constexpr int64_t kLength = 128;
  const Shape shape{1, 2, kLength, 2};
  const Tensor q(shape), k(shape), v = bridge::normal(shape, "v");
  for (int64_t i = 0; i < 2 * kLength; ++i) {
    const real at = static_cast<real>(i % kLength) - kLength / 2;
    q[2 * i] = std::sqrt(real(2)) * at / 8, q[2 * i + 1] = std::sqrt(real(2));
    k[2 * i] = at, k[2 * i + 1] = -at * at / 16;
  }
  const NoGrad no_grad;
  for (const bool causal : {false, true}) {
    const Tensor out = bridge::build("hierarchical", {{"block", int64_t{8}}}, kLength, causal, 3, 2)
                           ->forward(Var(q), Var(k), Var(v), {causal, {}})
                           .value();
    const oracle::Array want = oracle::softmax_attention(bridge::array_of(q), bridge::array_of(k),
                                                         bridge::array_of(v), {causal});
    // Causal, the first query of a cell is nearer to the past than the others.
    EXPECT_LE(bridge::relative_error(out, want.x), causal ? 0.1 : 0.02) << causal;
  }
}

TEST(Hierarchical, ABlockWithoutHalvesIsRefused) {
  const VariantInfo& info = find_variant("hierarchical");
  const auto why = [&](int64_t block) {
    return info.why_not({}, Params(info.name, info.params, {{"block", block}})).value_or("");
  };
  EXPECT_NE(why(3).find("must be even"), std::string::npos);
  EXPECT_EQ(why(4), "");
}

// Far keys share a weight, so the result is not softmax attention, and is nearer for small logits.
TEST(Hierarchical, ErrsMoreForLargerLogits) {
  const auto error = [](double size) {
    const Shape shape{2, 2, 64, 5};
    const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
                 v = bridge::normal(shape, "v");
    for (real& x : q.values()) x *= static_cast<real>(size);
    const NoGrad no_grad;
    const Tensor out = bridge::build("hierarchical", {{"block", int64_t{8}}}, 64, false)
                           ->forward(Var(q), Var(k), Var(v))
                           .value();
    return bridge::relative_error(
        out,
        oracle::softmax_attention(bridge::array_of(q), bridge::array_of(k), bridge::array_of(v), {})
            .x);
  };
  EXPECT_GT(error(0.1), 1e-3);
  EXPECT_GT(error(0.3), 1.5 * error(0.1));
  EXPECT_GT(error(1), 1.5 * error(0.3));
}

}  // namespace
}  // namespace attn::graph_test
