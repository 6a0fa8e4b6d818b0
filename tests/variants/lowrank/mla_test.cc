// mla against one pair of positions at a time; without a rotated key and a norm, multi-head
// attention; the absorbed decode against the naive forward, with a state that knows no heads.
#include <string>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/variants/mixers.h"

namespace attn::mla_test {
namespace {

using namespace mixers;

struct Setting {
  int64_t latent, rotary;
  bool norm, causal;
  Given given() const { return {{"latent", latent}, {"rotary", rotary}, {"norm", norm}}; }
};

using Rows = std::vector<std::vector<double>>;

Rows through(const Rows& x, const oracle::Array& w, int64_t first, int64_t count) {
  Rows out;
  for (const auto& row : x) {
    out.emplace_back();
    for (int64_t j = first; j < first + count; ++j) {
      double sum = 0;
      for (size_t c = 0; c < row.size(); ++c)
        sum += row[c] * w.at(0, 0, static_cast<int64_t>(c), j);
      out.back().push_back(sum);
    }
  }
  return out;
}

// As complex numbers: pair c of row t times e^(i·t·10000^(-2c/R)).
Rows turned(Rows x) {
  for (size_t t = 0; t < x.size(); ++t)
    for (size_t c = 0; 2 * c + 1 < x[t].size(); ++c) {
      const double angle =
          static_cast<double>(t) *
          std::pow(10000.0, -2.0 * static_cast<double>(c) / static_cast<double>(x[t].size()));
      const double re = x[t][2 * c], im = x[t][2 * c + 1];
      x[t][2 * c] = re * std::cos(angle) - im * std::sin(angle);
      x[t][2 * c + 1] = im * std::cos(angle) + re * std::sin(angle);
    }
  return x;
}

oracle::Array expected(const oracle::Array& x, const std::vector<oracle::Array>& all,
                       const Setting& s, int64_t heads, const std::vector<int64_t>& lengths) {
  std::vector<oracle::Array> w = all;
  if (s.norm) w.erase(w.begin() + 1);  // down, up_k, up_v, query, out
  const int64_t d = x.dim / heads, wide = d + s.rotary;
  oracle::Array out(x.batch, 1, x.len, x.dim);
  for (int64_t b = 0; b < x.batch; ++b) {
    const int64_t n = lengths.empty() ? x.len : lengths[static_cast<size_t>(b)];
    if (n == 0) continue;
    Rows rows;
    for (int64_t i = 0; i < x.len; ++i) {
      rows.emplace_back(x.row(b, 0, i).begin(), x.row(b, 0, i).end());
      if (i >= n) rows.back().assign(static_cast<size_t>(x.dim), 0.0);
    }
    Rows latent = through(rows, w[0], 0, s.latent);
    for (auto& row : latent) {
      double square = 0;
      for (const double value : row) square += value * value;
      for (size_t c = 0; s.norm && c < row.size(); ++c)
        row[c] *= all[1].x[c] / std::sqrt(square / static_cast<double>(s.latent) + 1e-6);
    }
    const Rows shared = turned(through(rows, w[0], s.latent, s.rotary));
    Rows mixed(static_cast<size_t>(x.len));
    for (int64_t h = 0; h < heads; ++h) {
      const Rows q = through(rows, w[3], h * wide, d),
                 q_turned = turned(through(rows, w[3], h * wide + d, s.rotary)),
                 k = through(latent, w[1], h * d, d), v = through(latent, w[2], h * d, d);
      for (size_t i = 0; i < rows.size(); ++i) {
        std::vector<double> sum(static_cast<size_t>(d));
        double total = 0;
        for (size_t j = 0; j < static_cast<size_t>(n) && (!s.causal || j <= i); ++j) {
          double logit = 0;
          for (size_t c = 0; c < q[i].size(); ++c) logit += q[i][c] * k[j][c];
          for (size_t c = 0; c < shared[j].size(); ++c) logit += q_turned[i][c] * shared[j][c];
          const double weight = std::exp(logit / std::sqrt(static_cast<double>(wide)));
          total += weight;
          for (size_t c = 0; c < sum.size(); ++c) sum[c] += weight * v[j][c];
        }
        for (const double value : sum) mixed[i].push_back(value / total);
      }
    }
    const Rows result = through(mixed, w[4], 0, x.dim);
    for (int64_t i = 0; i < x.len; ++i)
      for (int64_t c = 0; c < x.dim; ++c)
        out.at(b, 0, i, c) = result[static_cast<size_t>(i)][static_cast<size_t>(c)];
  }
  return out;
}

TEST(Mla, EqualsItsEquations) {
  for (const bool causal : {false, true})
    for (const Setting& s :
         {Setting{6, 4, true, causal}, {3, 2, false, causal}, {5, 0, true, causal}})
      for (const Case& at : cases(causal))
        if (at.len < 100)
          expect_twin("mla", at, s.given(), [&](const auto& x, const auto& w) {
            return expected(x, w, s, at.heads, at.lengths);
          });
}

// W_K = down·up_k: then it is multi-head attention; with the identity as down, up_k itself is W_K.
TEST(Mla, WithoutRotationAndNormIsMultiHeadAttention) {
  constexpr int64_t kHeads = 3, kDim = 4, kWidth = kHeads * kDim;
  const Case at{2, kHeads, 21, kDim, true, {}};
  for (const int64_t latent : {int64_t{5}, kWidth}) {
    const auto mla = build("mla", at, Setting{latent, 0, false, true}.given());
    draw_weights(*mla);
    std::map<std::string, Var> w;
    for (const Weight& weight : mla->weights()) {
      w[weight.name] = weight.value;
      if (weight.name != "down" || latent < kWidth) continue;
      const Tensor identity = Tensor::zeros(weight.value.shape());
      for (int64_t i = 0; i < kWidth; ++i) identity[i * (kWidth + 1)] = 1;
      weight.value.set_value(identity);
    }
    const Var x(Tensor::normal(at.rows(), rng(1, "x")));
    const auto project = [&](const char* up) {
      const Var whole = latent < kWidth ? matmul(w["down"], w[up]) : w[up];
      return split_heads(linear(x, whole, {}), kHeads);
    };
    const Tensor q = split_heads(linear(x, w["query"], {}), kHeads).value(),
                 k = project("up_k").value(), v = project("up_v").value();
    const oracle::Array mixed = oracle::softmax_attention(bridge::array_of(q), bridge::array_of(k),
                                                          bridge::array_of(v), {true});
    const oracle::Array rows = oracle::merged(mixed);
    const Tensor wide(at.rows());
    for (int64_t i = 0; i < wide.size(); ++i)
      wide[i] = static_cast<real>(rows.x[static_cast<size_t>(i)]);
    const Tensor want = linear(Var(wide), w["out"], {}).value();
    EXPECT_LE(distance(as_mixer(*mla)->mix(x, at.mask()).value(), want), 100 * kEpsilon);
  }
}

void expect_decode(const Case& at, const Setting& setting, double allowed) {
  const auto mla = build("mla", at, setting.given());
  draw_weights(*mla);
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const NoGrad no_grad;
  const Tensor all = as_mixer(*mla)->mix(Var(x), at.mask()).value();
  const auto decoder = mla->decoder(at.batch, at.len);
  const int64_t width = at.heads * at.head_dim;
  const Tensor heads = split_heads(Var(x), at.heads).value(),
               out({at.batch, at.heads, 1, at.head_dim});
  for (int64_t t = 0; t < at.len; ++t) {
    const Tensor row = slice(Var(heads), 2, t, t + 1).value();
    decoder->step(row, row, row, out);
    for (int64_t i = 0; i < out.size(); ++i)
      ASSERT_NEAR(static_cast<double>(out[i]),
                  static_cast<double>(all[(i / width * at.len + t) * width + i % width]), allowed)
          << "position " << t << ", batch " << at.batch << ", width " << width;
  }
}

TEST(Mla, AbsorbedDecodeEqualsTheNaiveForwardBeyondABlock) {
  expect_decode({2, 3, 300, 4, true, {}}, {6, 4, true, true}, 2e3 * kEpsilon);
}

// Few sequences are divided among the threads, into parts of one or two blocks.
TEST(Mla, DecodesASequenceByAllThreads) {
  for (const int threads : {1, 2, 3})
    for (const int64_t batch : {1, 3}) {
      const ScopedThreads scoped(threads);
      SCOPED_TRACE(std::to_string(threads) + " threads");
      expect_decode({batch, 2, 530, 4, true, {}}, {6, 4, true, true}, 2e3 * kEpsilon);
    }
}

// Weights of several tasks, for few rows in place and for many packed.
TEST(Mla, DecodesWideRowsInPartsOfTheWeights) {
  for (const int64_t batch : {2, 32})
    expect_decode({batch, 8, 5, 64, true, {}}, {48, 16, true, true}, 1e5 * kEpsilon);
}

TEST(Mla, BytesOfStateDoNotDependOnHeads) {
  for (const auto& [heads, dim] :
       {std::pair<int64_t, int64_t>{1, 48}, {4, 12}, {12, 4}, {12, 64}}) {
    const Case at{2, heads, 40, dim, true, {}};
    const auto mla = build("mla", at, Setting{32, 8, true, true}.given());
    EXPECT_EQ(mla->decoder(2, at.len)->state_bytes(),
              static_cast<int64_t>(sizeof(real)) * 2 * at.len * (32 + 8));
  }
}

}  // namespace
}  // namespace attn::mla_test
