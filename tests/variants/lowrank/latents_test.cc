// latent and luna against their stages written out; rows that are the queries; what is packed one
// to one is softmax attention.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/variants/twin_check.h"

namespace attn::latents_test {
namespace {

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

}  // namespace
}  // namespace attn::latents_test
