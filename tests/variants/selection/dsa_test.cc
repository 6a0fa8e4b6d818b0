// dsa against lists that a search over the indexer's scores finds, topk where the scorer is plain,
// its limit, ties at scores of 0, and the loss that trains its indexer.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/variants/selection/choices.h"
#include "variants/api/mimicry.h"

namespace attn::dsa_test {
namespace {

using bridge::array_of;
using choices::Array;
using choices::Choice;

struct Setting {
  int64_t keys, heads, dim;
  bool shared = true;
};

std::map<std::string, ParamValue> params(const Setting& s) {
  return {{"keys", s.keys},
          {"index_heads", s.heads},
          {"index_dim", s.dim},
          {"indexer", std::string(s.shared ? "shared" : "per_head")}};
}

// x·W for one row, W [1, 1 or heads, in, out]; of all heads h: their sum.
constexpr int64_t kAllHeads = -1;
std::vector<double> times(const Array& x, int64_t b, int64_t h, int64_t i, const Array& w) {
  std::vector<double> y(static_cast<size_t>(w.dim));
  for (int64_t head = 0; head < x.heads; ++head)
    for (int64_t c = 0; (h == kAllHeads || h == head) && c < x.dim; ++c)
      for (int64_t m = 0; m < w.dim; ++m)
        y[static_cast<size_t>(m)] += x.at(b, head, i, c) * w.at(0, w.heads == 1 ? 0 : head, c, m);
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
  const bool shared = attention.config().params.text("indexer") == "shared";
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const int64_t of = shared ? kAllHeads : h;
        const std::vector<double> queries = times(q, b, of, i, w[0]),
                                  weights = times(q, b, of, i, w[2]);
        std::vector<double> scores;
        for (int64_t j = 0; j < choices::visible(i, q.len, k.len, true, lengths, b); ++j)
          scores.push_back(score_of(queries, weights, normalised(times(k, b, of, j, w[1]))));
        double margin = choice.margin;
        choice.seen.push_back(choices::best(scores, keep, margin));
        if (margin > 0) choice.margin = margin;
      }
  return choice;
}

TEST(Dsa, EqualsItsOracle) {
  for (const Setting& s : {Setting{5, 2, 16},
                           {1, 1, 4},
                           {32, 3, 5},
                           {150, 2, 8},
                           {5, 2, 16, false},
                           {1, 1, 4, false},
                           {32, 3, 5, false}})
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
  const auto attention = choices::build("dsa", shape, true, params({3, 1, d, false}));
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

// One choice for all heads, in a batch whose sequences differ.
TEST(Dsa, HeadsOfASequenceSeeTheSameKeys) {
  const Shape shape{2, 3, 90, 8};
  const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"), v = Tensor(shape);
  for (int64_t i = 0; i < v.size(); ++i)  // a key's value tells which it is
    v[i] = i % 8 == i / 8 % 90 % 8 ? real(1) : real(0);
  const auto attention = choices::build("dsa", shape, true, params({1, 2, 4}));
  const Tensor out = choices::forward(*attention, q, k, v);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t at = 0; at < 90 * 8; ++at) {
      ASSERT_EQ(out[(b * 3 + 1) * 720 + at], out[b * 3 * 720 + at]);
      ASSERT_EQ(out[(b * 3 + 2) * 720 + at], out[b * 3 * 720 + at]);
    }
}

TEST(Dsa, TheFutureMovesNothing) {
  for (const bool shared : {true, false}) {
    const auto attention = choices::build("dsa", {1, 2, 150, 8}, true, params({10, 2, 8, shared}));
    choices::expect_future_is_unseen(*attention, 150, {1, 47, 48, 49, 64, 149});
  }
}

TEST(Dsa, DecodesWhatItAnswersInParallel) {
  for (const int64_t kv_heads : {1, 2, 4}) {
    const Tensor q = bridge::normal({2, 4, 140, 8}, "q"),
                 k = bridge::normal({2, kv_heads, 140, 8}, "k"),
                 v = bridge::normal({2, kv_heads, 140, 8}, "v");
    for (const bool shared : {true, false}) {
      const auto attention = choices::build("dsa", q.shape(), true, params({9, 2, 8, shared}));
      for (const int64_t prefill : {0, 65, 139})
        choices::expect_decodes(*attention, q, k, v, prefill);
    }
  }
}

// The cross-entropy of softmax(I) to the mean of the heads' weights, or to those of each head.
// With `keep`, over so many keys of the largest scores.
Array loss_of(const Array& q, const Array& k, const std::vector<Array>& w, bool shared,
              const std::vector<int64_t>& lengths, int64_t keep = 1 << 20) {
  Array loss(1, 1, 1, 1);
  double rows = 0;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < (shared ? 1 : q.heads); ++h)
      for (int64_t i = 0; i < (lengths.empty() ? q.len : lengths[static_cast<size_t>(b)]); ++i) {
        const int64_t of = shared ? kAllHeads : h;
        const std::vector<double> queries = times(q, b, of, i, w[0]),
                                  weights = times(q, b, of, i, w[2]);
        std::vector<double> wanted(static_cast<size_t>(i + 1)), scores;
        for (int64_t j = 0; j <= i; ++j)
          scores.push_back(score_of(queries, weights, normalised(times(k, b, of, j, w[1]))));
        std::vector<bool> kept;  // fewer than `keep` are before it
        double total = 0;
        for (int64_t j = 0; j <= i; ++j) {
          const double own = scores[static_cast<size_t>(j)];
          int64_t before = 0;
          for (int64_t other = 0; other <= i; ++other) {
            const double score = scores[static_cast<size_t>(other)];
            before += score > own || (score == own && other < j);
          }
          kept.push_back(before < keep);
          if (kept.back()) total += std::exp(own);
        }
        const int64_t first = shared ? 0 : h, last = shared ? q.heads : h + 1;
        for (int64_t head = first; head < last; ++head) {
          std::vector<double> some;
          double sum = 0;
          for (int64_t j = 0; j <= i; ++j) {
            some.push_back(kept[static_cast<size_t>(j)]
                               ? std::exp(choices::product(q, k, b, head, i, j) /
                                          std::sqrt(static_cast<double>(q.dim)))
                               : 0);
            sum += some.back();
          }
          for (size_t j = 0; j < some.size(); ++j)
            wanted[j] += some[j] / sum / static_cast<double>(last - first);
        }
        for (size_t j = 0; j < scores.size(); ++j)
          if (kept[j]) loss.x[0] += wanted[j] * (std::log(total) - scores[j]);
        ++rows;
      }
  loss.x[0] /= std::max(1.0, rows);
  return loss;
}

TEST(Dsa, ItsLossIsTheCrossEntropyToTheHeadsWeights) {
  for (const bool shared : {true, false})
    for (const int64_t n : {1, 17, 40})
      for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {n / 2, n}}) {
        const Shape shape{2, 2, n, 5};
        const auto attention = choices::build("dsa", shape, true, params({9, 3, 4, shared}));
        const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k");
        const Array of_q = array_of(q), of_k = array_of(k);
        bridge::fill_padding(q, lengths, bridge::kNaN);
        bridge::fill_padding(k, lengths, bridge::kNaN);
        for (const bool chosen : {false, true}) {
          const Mimicking& by = *as_mimicking(*attention);
          const Var loss = chosen ? by.chosen_mimicry_loss(q, k, {true, lengths})
                                  : by.mimicry_loss(q, k, {true, lengths});
          std::vector<Tensor> values, grads;
          loss.backward();
          for (const Weight& weight : attention->weights()) {
            EXPECT_TRUE(weight.moved && !weight.learned) << weight.name;
            values.push_back(weight.value.value());
            grads.push_back(weight.value.grad().clone());
            weight.value.zero_grad();
          }
          const auto twin = [&](const std::vector<Array>& w) {
            return loss_of(of_q, of_k, w, shared, lengths, chosen ? 9 : 1 << 20);
          };
          const double want = twin(bridge::arrays_of(values)).x[0];
          EXPECT_NEAR(static_cast<double>(loss.value()[0]), want, 200 * kEpsilon * (1 + want));
          bridge::expect_gradients(values, grads, Tensor::full({1, 1}, 1), twin, 1e-6);
        }
      }
}

}  // namespace
}  // namespace attn::dsa_test
