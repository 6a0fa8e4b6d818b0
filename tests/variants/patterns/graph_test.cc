// graph: a complete graph is softmax attention, self-loops alone copy the values, the edges of a
// window are `truncated`; and its own random graph: its degree, no edge twice, each prefix alike.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/variants/textbook_cases.h"
#include "variants/patterns/random_graph.h"

namespace attn::variants_graph_test {
namespace {

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
  EXPECT_TRUE(bridge::relative_error(got, bridge::array_of(want).x) <= 40 * kEpsilon)
      << bridge::relative_error(got, bridge::array_of(want).x);
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
        textbook::expect_decoding("graph", {{"degree", degree}}, 1, length, prefill);
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

}  // namespace
}  // namespace attn::variants_graph_test
