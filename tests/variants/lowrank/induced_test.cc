// induced against the two blocks written out; a set that is permuted; one point; and, without
// residuals, packing and unpacking.
#include <algorithm>

#include "tests/variants/mixers.h"

namespace attn::induced_test {
namespace {

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
}  // namespace attn::induced_test
