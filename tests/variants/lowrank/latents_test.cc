// Attention through a few rows of their own: latents and induced.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/variants/mixers.h"
#include "tests/variants/oracle_bridge.h"

namespace attn::latents_test {
namespace {

// latent and luna, causal or not, against their stages written out; rows that are the queries; what
// is packed one to one is softmax attention.

using bridge::array_of;
using Given = std::map<std::string, ParamValue>;

// softmax(q·kᵀ/√d)·v of the valid keys of one head, entry by entry.
oracle::Array attention_of(const oracle::Array& q, const oracle::Array& k, const oracle::Array& v,
                           const std::vector<int64_t>& lengths) {
  oracle::Array out(q.batch, q.heads, q.len, v.dim);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const int64_t n = lengths.empty() ? k.len : lengths[static_cast<size_t>(b)];
        double total = 0;
        for (int64_t j = 0; j < n; ++j) {
          double logit = 0;
          for (int64_t c = 0; c < q.dim; ++c) logit += q.at(b, h, i, c) * k.at(b, h, j, c);
          const double weight = std::exp(logit / std::sqrt(static_cast<double>(q.dim)));
          total += weight;
          for (int64_t c = 0; c < v.dim; ++c) out.at(b, h, i, c) += weight * v.at(b, h, j, c);
        }
        for (int64_t c = 0; n > 0 && c < v.dim; ++c) out.at(b, h, i, c) /= total;
      }
  return out;
}

oracle::Array repeated(const oracle::Array& rows, int64_t batch) {  // of a weight
  oracle::Array all(batch, rows.heads, rows.len, rows.dim);
  for (int64_t b = 0; b < batch; ++b)
    std::copy(rows.x.begin(), rows.x.end(), all.x.begin() + b * std::ssize(rows.x));
  return all;
}

oracle::Array product(const oracle::Array& z, const oracle::Array& w) {
  oracle::Array out(z.batch, z.heads, z.len, z.dim);
  for (int64_t i = 0; i < std::ssize(out.x); ++i) {
    const int64_t c = i % z.dim, row = i / z.dim, h = row / z.len % z.heads;
    for (int64_t a = 0; a < z.dim; ++a)
      out.x[static_cast<size_t>(i)] += z.x[static_cast<size_t>(row * z.dim + a)] * w.at(0, h, a, c);
  }
  return out;
}

TEST(Latent, EqualsItsOracle) {
  for (const int64_t length : {1, 2, 7, 37, 130})
    for (const int64_t layers : {0, 1, 2})
      for (const bool padded : {false, true}) {
        SCOPED_TRACE(testing::Message() << length << ", layers " << layers);
        std::vector<int64_t> lengths;
        if (padded) lengths = {length / 2, length - 1};  // 0 at length 1
        bridge::expect_twin(
            {"latent",
             {{"latents", int64_t{6}}, {"layers", layers}},
             {2, 2, length, length, 5, false},
             lengths},
            [&](const Attention&, const Tensor&) {
              return [=](const std::vector<oracle::Array>& x) {
                oracle::Array z = attention_of(repeated(x[3], 2), x[1], x[2], lengths);
                size_t next = 4;
                for (int64_t layer = 0; layer < layers; ++layer, next += 3) {
                  const oracle::Array more = attention_of(
                      product(z, x[next]), product(z, x[next + 1]), product(z, x[next + 2]), {});
                  for (size_t i = 0; i < z.x.size(); ++i) z.x[i] += more.x[i];
                }
                return attention_of(x[0], z, z, {});
              };
            });
      }
}

TEST(Luna, EqualsItsOracle) {
  for (const int64_t length : {1, 2, 7, 37, 130})
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message() << length << (padded ? " padded" : ""));
      std::vector<int64_t> lengths;
      if (padded) lengths = {length / 2, length - 1};
      bridge::expect_twin(
          {"luna", {{"latents", int64_t{6}}}, {2, 2, length, length, 5, false}, lengths},
          [&](const Attention&, const Tensor&) {
            return [=](const std::vector<oracle::Array>& x) {
              const oracle::Array rows = repeated(x[3], 2);
              return attention_of(x[0], attention_of(rows, x[1], x[1], lengths),
                                  attention_of(rows, x[1], x[2], lengths), {});
            };
          });
    }
}

// Causal luna by its two accumulated matrices, one position after the other, as the authors' code
// steps: A += k·ωᵀ and B += ω·vᵀ.
oracle::Array stepped(const std::vector<oracle::Array>& x, const std::vector<int64_t>& lengths) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2], &rows = x[3];
  oracle::Array out(q.batch, q.heads, q.len, q.dim);
  const auto dim = static_cast<size_t>(q.dim), slots = static_cast<size_t>(rows.len);
  const double root = std::sqrt(static_cast<double>(q.dim));
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h) {
      const int64_t n = lengths.empty() ? k.len : lengths[static_cast<size_t>(b)];
      std::vector<double> keys(dim * slots), values(slots * dim);
      double steps = 0;
      for (int64_t i = 0; i < q.len; ++i) {
        for (size_t s = 0; i < n && s < slots; ++s) {
          double logit = 0;
          for (int64_t c = 0; c < q.dim; ++c)
            logit += rows.at(0, h, static_cast<int64_t>(s), c) * k.at(b, h, i, c) / root;
          const double weight = std::log1p(std::exp(std::log(2.0) * logit)) / std::log(2.0);
          for (size_t c = 0; c < dim; ++c) {
            keys[c * slots + s] += k.at(b, h, i, static_cast<int64_t>(c)) * weight;
            values[s * dim + c] += weight * v.at(b, h, i, static_cast<int64_t>(c));
          }
        }
        if (i < n) ++steps;
        if (steps == 0) continue;
        std::vector<double> answers(slots);
        double total = 0;
        for (size_t s = 0; s < slots; ++s) {
          for (size_t c = 0; c < dim; ++c)
            answers[s] += q.at(b, h, i, static_cast<int64_t>(c)) / root * keys[c * slots + s];
          total += answers[s] = std::exp(answers[s] / steps);
        }
        for (size_t s = 0; s < slots; ++s)
          for (size_t c = 0; c < dim; ++c)
            out.at(b, h, i, static_cast<int64_t>(c)) +=
                answers[s] / total * values[s * dim + c] / steps;
      }
    }
  return out;
}

TEST(Luna, CausalEqualsTheStepsOfItsAuthors) {
  for (const int64_t length : {1, 2, 7, 37, 130})
    for (const bool padded : {false, true}) {
      SCOPED_TRACE(testing::Message() << length << (padded ? " padded" : ""));
      std::vector<int64_t> lengths;
      if (padded) lengths = {length / 2, length - 1};
      bridge::expect_twin(
          {"luna", {{"latents", int64_t{6}}}, {2, 2, length, length, 5, true}, lengths},
          [&](const Attention&, const Tensor&) {
            return [=](const std::vector<oracle::Array>& x) { return stepped(x, lengths); };
          });
    }
}

TEST(Luna, IsADistributionWhereItSeesAll) {
  const VariantInfo& luna = find_variant("luna");
  const Params chosen(luna.name, luna.params, {});
  EXPECT_TRUE(luna.convex(chosen, false));
  EXPECT_FALSE(luna.convex(chosen, true));
  EXPECT_TRUE(luna.why_not({.q_len = 3, .kv_len = 5, .causal = true}, chosen));
  EXPECT_FALSE(luna.why_not({.q_len = 3, .kv_len = 5}, chosen));
}

Tensor output(const std::string& name, const Given& given, const Tensor& latents,
              const std::vector<Tensor>& inputs) {
  const auto attention =
      find_variant(name).build({1, latents.dim(2), inputs[1].dim(2), false, 3, {}}, given);
  for (const Weight& weight : attention->weights()) {
    if (weight.name == "latents") {
      weight.value.set_value(latents);
      continue;
    }
    const Tensor identity = Tensor::zeros(weight.value.shape());
    for (int64_t i = 0; i < identity.dim(1); ++i) identity[i * (identity.dim(1) + 1)] = 1;
    weight.value.set_value(identity);
  }
  const NoGrad no_grad;
  return attention->forward(Var(inputs[0]), Var(inputs[1]), Var(inputs[2])).value();
}

// The first reading is then full attention, cross-attention of the queries.
TEST(Latent, RowsThatAreTheQueriesReadByFullAttention) {
  constexpr int64_t kLen = 24, kDim = 6;
  const Tensor q = bridge::normal({1, 1, kLen, kDim}, "q"),
               k = bridge::normal({1, 1, 40, kDim}, "k"), v = bridge::normal(k.shape(), "v");
  const Tensor out = output("latent", {{"latents", kLen}, {"layers", int64_t{0}}},
                            q.reshaped({1, kLen, kDim}), {q, k, v});
  const oracle::Array read = oracle::softmax_attention(array_of(q), array_of(k), array_of(v), {});
  EXPECT_LE(bridge::relative_error(out, oracle::softmax_attention(array_of(q), read, read, {}).x),
            50 * kEpsilon);
}

// Orthogonal keys, rows that point at one key each: nothing is mixed.
TEST(Luna, PackedOneToOneIsSoftmaxAttention) {
  constexpr int64_t kLen = 12;
  const Tensor k = Tensor::zeros({1, 1, kLen, kLen}), rows = Tensor::zeros({1, kLen, kLen});
  for (int64_t i = 0; i < kLen; ++i)
    k[i * (kLen + 1)] = 3, rows[i * kLen + (i + 5) % kLen] = 1000;  // in any order
  const Tensor q = bridge::normal(k.shape(), "q"), v = bridge::normal(k.shape(), "v");
  const Tensor out = output("luna", {{"latents", kLen}}, rows, {q, k, v});
  const oracle::Array want = oracle::softmax_attention(array_of(q), array_of(k), array_of(v), {});
  EXPECT_LE(bridge::relative_error(out, want.x), 50 * kEpsilon);
}

// induced against the two blocks written out; a set that is permuted; one point; and, without
// residuals, packing and unpacking.

using namespace mixers;
using Rows = std::vector<std::vector<double>>;

Rows through(const Rows& x, const oracle::Array& w, const oracle::Array* bias) {
  Rows out;
  for (const auto& row : x) {
    out.emplace_back();
    for (int64_t j = 0; j < w.dim; ++j) {
      double sum = bias ? bias->x[static_cast<size_t>(j)] : 0;
      for (size_t c = 0; c < row.size(); ++c)
        sum += row[c] * w.at(0, 0, static_cast<int64_t>(c), j);
      out.back().push_back(sum);
    }
  }
  return out;
}

Rows layer_normalised(Rows x, const oracle::Array& gain, const oracle::Array& shift) {
  for (auto& row : x) {
    double mean = 0, square = 0;
    for (const double value : row) mean += value / static_cast<double>(row.size());
    for (const double value : row)
      square += (value - mean) * (value - mean) / static_cast<double>(row.size());
    for (size_t c = 0; c < row.size(); ++c)
      row[c] = (row[c] - mean) / std::sqrt(square + 1e-5) * gain.x[c] + shift.x[c];
  }
  return x;
}

// MAB(queries, keys); w begins at the block's first weight.
Rows block(const Rows& queries, const Rows& keys, const oracle::Array* w, size_t heads, bool norm) {
  const Rows q = through(queries, w[0], &w[1]), k = through(keys, w[2], nullptr),
             v = through(keys, w[3], &w[4]);
  Rows out = q;
  const size_t width = w[0].x.size() / static_cast<size_t>(w[0].len), dim = width / heads;
  for (size_t h = 0; h < heads; ++h)
    for (size_t i = 0; i < q.size(); ++i) {
      std::vector<double> weights;
      double total = 0;
      for (const auto& key : k) {
        double logit = 0;
        for (size_t c = h * dim; c < (h + 1) * dim; ++c) logit += q[i][c] * key[c];
        weights.push_back(std::exp(logit / std::sqrt(static_cast<double>(width))));
        total += weights.back();
      }
      for (size_t j = 0; j < k.size(); ++j)
        for (size_t c = h * dim; c < (h + 1) * dim; ++c) out[i][c] += weights[j] / total * v[j][c];
    }
  if (norm) out = layer_normalised(out, w[7], w[8]);
  const Rows more = through(out, w[5], &w[6]);
  for (size_t i = 0; i < out.size(); ++i)
    for (size_t c = 0; c < out[i].size(); ++c) out[i][c] += std::max(0.0, more[i][c]);
  return norm ? layer_normalised(out, w[9], w[10]) : out;
}

oracle::Array expected(const oracle::Array& x, const std::vector<oracle::Array>& w, int64_t heads,
                       bool norm, const std::vector<int64_t>& lengths) {
  oracle::Array out(x.batch, 1, x.len, x.dim);
  Rows points;
  for (int64_t s = 0; s < w[0].len; ++s)
    points.emplace_back(w[0].row(0, 0, s).begin(), w[0].row(0, 0, s).end());
  for (int64_t b = 0; b < x.batch; ++b) {
    Rows set;
    const int64_t n = lengths.empty() ? x.len : lengths[static_cast<size_t>(b)];
    for (int64_t i = 0; i < n; ++i) set.emplace_back(x.row(b, 0, i).begin(), x.row(b, 0, i).end());
    if (n == 0) continue;
    const auto count = static_cast<size_t>(heads);
    const Rows answer =
        block(set, block(points, set, &w[1], count, norm), &w[norm ? 12 : 8], count, norm);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t c = 0; c < x.dim; ++c)
        out.at(b, 0, i, c) = answer[static_cast<size_t>(i)][static_cast<size_t>(c)];
  }
  return out;
}

TEST(Induced, EqualsItsEquations) {
  for (const bool norm : {false, true})
    for (const Case& at : cases(false))
      if (at.len < 100 && !(norm && at.heads * at.head_dim < 4))
        expect_twin(
            "induced", at, {{"latents", int64_t{4}}, {"norm", norm}},
            [&](const auto& x, const auto& w) {
              return expected(x, w, at.heads, norm, at.lengths);
            },
            1e-7);  // crosses no kink
}

TEST(Induced, APermutedSetGivesPermutedRows) {
  const Case at{2, 2, 50, 4, false, {}};
  const auto induced = build("induced", at, {});
  draw_weights(*induced);
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x")), moved(x.shape());
  const auto from = [&](int64_t i) { return (i * 7 + 3) % at.len; };
  const auto move = [&](const Tensor& a, const Tensor& to) {
    for (int64_t i = 0; i < a.size() / 8; ++i)
      std::copy_n(a.data() + (i / at.len * at.len + from(i % at.len)) * 8, 8, to.data() + i * 8);
  };
  move(x, moved);
  const Tensor want(x.shape());
  move(as_mixer(*induced)->mix(Var(x)).value(), want);
  EXPECT_LE(distance(as_mixer(*induced)->mix(Var(moved)).value(), want), 50 * kEpsilon);
}

// A summary of one row is all that a query can read: its weights are one, whatever the query is.
TEST(Induced, OnePointGivesEveryQueryTheSameValue) {
  const Case at{1, 1, 9, 4, false, {}};
  const auto induced = build("induced", at, {{"latents", int64_t{1}}});
  draw_weights(*induced);
  for (const Weight& weight : induced->weights())  // leaves Q' out, and what depends on it
    if (weight.name == "answer_q" || weight.name == "answer_out")
      weight.value.set_value(Tensor::zeros(weight.value.shape()));
  const Tensor out = as_mixer(*induced)->mix(Var(Tensor::normal(at.rows(), rng(1, "x")))).value();
  for (int64_t i = 4; i < out.size(); ++i)
    EXPECT_NEAR(static_cast<double>(out[i]), static_cast<double>(out[i - 4]), 20 * kEpsilon);
}

}  // namespace
}  // namespace attn::latents_test
