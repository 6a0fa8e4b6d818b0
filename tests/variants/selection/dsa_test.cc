// dsa against lists that a search over the indexer's scores finds, topk where the scorer is plain,
// its limit, and ties at scores of 0.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/variants/selection/choices.h"

namespace attn::dsa_test {
namespace {

using bridge::array_of;
using choices::Array;
using choices::Choice;

struct Setting {
  int64_t keys, heads, dim;
};

std::map<std::string, ParamValue> params(const Setting& s) {
  return {{"keys", s.keys}, {"index_heads", s.heads}, {"index_dim", s.dim}};
}

// x·W for one row, W [1, 1 or heads, in, out].
std::vector<double> times(const Array& x, int64_t b, int64_t h, int64_t i, const Array& w) {
  std::vector<double> y(static_cast<size_t>(w.dim));
  for (int64_t c = 0; c < x.dim; ++c)
    for (int64_t m = 0; m < w.dim; ++m)
      y[static_cast<size_t>(m)] += x.at(b, h, i, c) * w.at(0, w.heads == 1 ? 0 : h, c, m);
  return y;
}

std::vector<double> normalised(std::vector<double> x) {
  double mean = 0, square = 0;
  for (const double value : x) mean += value;
  mean /= static_cast<double>(x.size());
  for (const double value : x) square += (value - mean) * (value - mean);
  for (double& value : x)
    value = (value - mean) / std::sqrt(square / static_cast<double>(x.size()) + 1e-5);
  return x;
}

// Σ_c (1 + q·C_c)·relu(q·A_c·LayerNorm(k·B))
double score_of(const std::vector<double>& queries, const std::vector<double>& weights,
                const std::vector<double>& key) {
  double score = 0;
  for (size_t c = 0; c < weights.size(); ++c) {
    double product = 0;
    for (size_t m = 0; m < key.size(); ++m) product += queries[c * key.size() + m] * key[m];
    if (product > 0) score += (1 + weights[c]) * product;
  }
  return score;
}

// The margin leaves out ties at 0, where order decides.
Choice choice_of(const Attention& attention, const Array& q, const Array& k, int64_t keep,
                 const std::vector<int64_t>& lengths) {
  std::vector<Array> w;
  for (const Weight& weight : attention.weights()) w.push_back(array_of(weight.value.value()));
  Choice choice;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const std::vector<double> queries = times(q, b, h, i, w[0]),
                                  weights = times(q, b, h, i, w[2]);
        std::vector<double> scores;
        for (int64_t j = 0; j < choices::visible(i, q.len, k.len, true, lengths, b); ++j)
          scores.push_back(score_of(queries, weights, normalised(times(k, b, h, j, w[1]))));
        double margin = choice.margin;
        choice.seen.push_back(choices::best(scores, keep, margin));
        if (margin > 0) choice.margin = margin;
      }
  return choice;
}

TEST(Dsa, EqualsItsOracle) {
  for (const Setting& s : {Setting{5, 2, 16}, {1, 1, 4}, {32, 3, 5}, {150, 2, 8}})
    for (const int64_t n : {1, 2, 37, 131})
      for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {n / 2, n}, {0, n - 1}}) {
        SCOPED_TRACE(testing::Message()
                     << s.keys << " of " << n << (lengths.empty() ? "" : " padded"));
        const Shape shape{2, 2, n, 5};
        const bridge::TwinCase c{"dsa", params(s), {2, 2, n, n, 5, true}, lengths};
        bridge::expect_twin(c, [&](const Attention& attention, const Tensor& q) {
          const Choice choice = choice_of(attention, array_of(q),
                                          array_of(bridge::normal(shape, "k")), s.keys, lengths);
          EXPECT_GT(choice.margin, 2e-6);
          return [=](const std::vector<Array>& x) {
            return choices::attend(x[0], x[1], x[2], choice.seen);
          };
        });
      }
}

TEST(Dsa, EqualsItsOracleInLongRows) {
  const Shape shape{1, 1, 900, 16};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  for (const Setting& s : {Setting{20, 2, 16}, {300, 1, 8}}) {
    const auto attention = choices::build("dsa", shape, true, params(s));
    const Choice choice = choice_of(*attention, array_of(q), array_of(k), s.keys, {});
    EXPECT_GT(choice.margin, 5e-7);
    const Array want = choices::attend(array_of(q), array_of(k), array_of(v), choice.seen);
    EXPECT_TRUE(bridge::relative_error(choices::forward(*attention, q, k, v), want.x) <=
                200 * kEpsilon);
  }
}

// No index head likes any key: all scores are 0, and the first keys are kept.
TEST(Dsa, OfScoresOfZeroTheEarlierKeysAreKept) {
  const int64_t n = 200, keep = 9;
  const Shape shape{1, 2, n, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const auto attention = choices::build("dsa", shape, true, params({keep, 2, 4}));
  attention->weights()[0].value.set_value(Tensor::zeros({2, 8, 8}));
  const Array want = oracle::softmax_attention(
      array_of(q), array_of(k), array_of(v),
      {true, {}, -1, [](int64_t, int64_t, int64_t, int64_t j) { return j < keep; }});
  EXPECT_TRUE(bridge::relative_error(choices::forward(*attention, q, k, v), want.x) <=
              100 * kEpsilon);
  choices::expect_decodes(*attention, q, k, v, 150);
}

TEST(Dsa, WithAPlainScorerItIsTopK) {
  const Shape shape{2, 3, 90, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const Tensor topk =
      choices::forward(*choices::build("topk", shape, true, {{"keys", int64_t{7}}}), q, k, v);
  const auto plain =
      choices::build("dsa", shape, true, {{"keys", int64_t{7}}, {"scorer", std::string("plain")}});
  EXPECT_TRUE(bridge::same_bits(choices::forward(*plain, q, k, v), topk));
}

// One head, identities, w = 1, and keys of mean 0 and deviation 1 before and after the layer norm:
// relu changes no order among the keys that are kept.
TEST(Dsa, AnIndexerOfIdentitiesIsTopKOnNormalisedKeys) {
  const int64_t n = 60, d = 8;
  const Shape shape{1, 1, n, d};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  for (int64_t j = 0; j < n; ++j) {
    std::vector<double> key(k.data() + j * d, k.data() + (j + 1) * d);
    key = normalised(key);
    for (int64_t c = 0; c < d; ++c) k[j * d + c] = static_cast<real>(key[static_cast<size_t>(c)]);
  }
  const auto attention = choices::build("dsa", shape, true, params({3, 1, d}));
  Tensor identity = Tensor::zeros({1, d, d});
  for (int64_t c = 0; c < d; ++c) identity[c * d + c] = 1;
  attention->weights()[0].value.set_value(identity);
  attention->weights()[1].value.set_value(identity.reshaped({d, d}));
  attention->weights()[2].value.set_value(Tensor::zeros({1, d, 1}));
  const Tensor topk =
      choices::forward(*choices::build("topk", shape, true, {{"keys", int64_t{3}}}), q, k, v);
  const Tensor got = choices::forward(*attention, q, k, v);
  for (int64_t i = 20; i < n; ++i)  // early queries have fewer keys that they like than they keep
    for (int64_t c = 0; c < d; ++c)
      ASSERT_NEAR(got[i * d + c], topk[i * d + c], 100 * kEpsilon) << i;
}

TEST(Dsa, AllKeysAreFullAttention) {
  const Shape shape{2, 2, 70, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
               v = bridge::normal(shape, "v");
  const Array full = oracle::softmax_attention(array_of(q), array_of(k), array_of(v), {true});
  const Tensor got =
      choices::forward(*choices::build("dsa", shape, true, params({70, 2, 16})), q, k, v);
  EXPECT_TRUE(bridge::relative_error(got, full.x) <= 100 * kEpsilon);
}

TEST(Dsa, TheFutureMovesNothing) {
  const auto attention = choices::build("dsa", {1, 2, 150, 8}, true, params({10, 2, 8}));
  choices::expect_future_is_unseen(*attention, 150, {1, 47, 48, 49, 64, 149});
}

TEST(Dsa, DecodesWhatItAnswersInParallel) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    const Tensor q = bridge::normal({2, 4, 140, 8}, "q"),
                 k = bridge::normal({2, kv_heads, 140, 8}, "k"),
                 v = bridge::normal({2, kv_heads, 140, 8}, "v");
    const auto attention = choices::build("dsa", q.shape(), true, params({9, 2, 8}));
    for (const int64_t prefill : {0, 65, 139})
      choices::expect_decodes(*attention, q, k, v, prefill);
  }
}

}  // namespace
}  // namespace attn::dsa_test
