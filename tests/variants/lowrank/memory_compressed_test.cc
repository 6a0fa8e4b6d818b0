// memory_compressed against sums over blocks written out; averages of blocks; weights that sum to
// one with the null key; blocks that do not move with the length; decoding.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/ops.h"
#include "tests/variants/oracle_bridge.h"

namespace attn::memory_compressed_test {
namespace {

using bridge::array_of;
using Given = std::map<std::string, ParamValue>;

struct Setting {
  int64_t stride;
  bool null, causal;
  std::vector<int64_t> lengths;
};

// Weights in the order of the variant: [head][t][in][out], then rows of each head.
double compressed(const oracle::Array& x, const oracle::Array& w, const Setting& s, int64_t b,
                  int64_t h, int64_t block, int64_t c) {
  const int64_t valid = s.lengths.empty() ? x.len : s.lengths[static_cast<size_t>(b)];
  double sum = 0;
  for (int64_t t = 0; t < s.stride; ++t)
    for (int64_t a = 0; a < x.dim; ++a)
      if (block * s.stride + t < valid)
        sum += w.x[static_cast<size_t>(((h * s.stride + t) * x.dim + a) * x.dim + c)] *
               x.at(b, h, block * s.stride + t, a);
  return sum;
}

oracle::Array expected(const std::vector<oracle::Array>& x, const Setting& s) {
  const oracle::Array &q = x[0], &k = x[1], &v = x[2];
  oracle::Array out(q.batch, q.heads, q.len, q.dim);
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h)
      for (int64_t i = 0; i < q.len; ++i) {
        const int64_t valid = s.lengths.empty() ? k.len : s.lengths[static_cast<size_t>(b)];
        double total = 0;
        const auto add = [&](auto key, auto value) {
          double logit = 0;
          for (int64_t c = 0; c < q.dim; ++c) logit += q.at(b, h, i, c) * key(c);
          const double weight = std::exp(logit / std::sqrt(static_cast<double>(q.dim)));
          total += weight;
          for (int64_t c = 0; c < q.dim; ++c) out.at(b, h, i, c) += weight * value(c);
        };
        const auto of_row = [&](size_t which) {
          return [&, which](int64_t c) { return x[which].x[static_cast<size_t>(h * q.dim + c)]; };
        };
        if (s.null && valid > 0) add(of_row(7), of_row(8));
        for (int64_t block = 0; block * s.stride < valid; ++block) {
          if (s.causal && (block + 1) * s.stride - 1 > i) break;
          add(
              [&](int64_t c) {
                return compressed(k, x[3], s, b, h, block, c) + (s.null ? of_row(6)(c) : 0);
              },
              [&](int64_t c) { return compressed(v, x[4], s, b, h, block, c) + of_row(5)(c); });
        }
        for (int64_t c = 0; c < q.dim; ++c)
          if (total > 0) out.at(b, h, i, c) /= total;
      }
  return out;
}

TEST(MemoryCompressed, EqualsItsOracle) {
  for (const int64_t length : {1, 2, 3, 4, 24, 37, 200})
    for (const bool causal : {false, true})
      for (const bool null : {false, true})
        for (const bool padded : {false, true}) {
          if (!causal && !null && length == 200) continue;
          SCOPED_TRACE(testing::Message() << length << (causal ? " causal" : "")
                                          << (null ? " null" : "") << (padded ? " padded" : ""));
          Setting s{length == 200 ? 2 : 3, null, causal, {}};
          if (padded) s.lengths = {length / 2, length - 1};  // 0 at length 1
          bridge::expect_twin({"memory_compressed",
                               {{"stride", s.stride}, {"null", null}},
                               {2, 2, length, length, 5, causal},
                               s.lengths},
                              [&](const Attention&, const Tensor&) {
                                return [=](const auto& x) { return expected(x, s); };
                              });
        }
}

std::unique_ptr<Attention> build(const Given& given, int64_t dim, bool causal = false) {
  return find_variant("memory_compressed").build({1, dim, 64, causal, 3, {}}, given);
}

// compress_k and compress_v of `stride` rows: each the identity times `factor`.
void set_diagonal(const Attention& attention, real factor) {
  for (const Weight& weight : attention.weights()) {
    if (weight.value.shape().rank() < 4) continue;
    const int64_t d = weight.value.dim(3);
    const Tensor diagonal = Tensor::zeros(weight.value.shape());
    for (int64_t i = 0; i < diagonal.size(); ++i)
      if (i / d % d == i % d) diagonal[i] = factor;
    weight.value.set_value(diagonal);
  }
}

TEST(MemoryCompressed, AveragesAreAttentionToBlockMeans) {
  constexpr int64_t kStride = 4, kLen = 24, kDim = 6;
  const auto attention = build({{"stride", kStride}, {"null", false}}, kDim);
  set_diagonal(*attention, real(1) / kStride);
  const Tensor q = bridge::normal({1, 1, kLen, kDim}, "q"), k = bridge::normal(q.shape(), "k"),
               v = bridge::normal(q.shape(), "v");
  const auto means = [](const Tensor& x) {
    oracle::Array mean(1, 1, kLen / kStride, kDim);
    for (int64_t i = 0; i < x.size(); ++i)
      mean.at(0, 0, i / kDim / kStride, i % kDim) += static_cast<double>(x[i]) / kStride;
    return mean;
  };
  const oracle::Array want = oracle::softmax_attention(array_of(q), means(k), means(v), {});
  const NoGrad no_grad;
  EXPECT_LE(bridge::relative_error(attention->forward(Var(q), Var(k), Var(v)).value(), want.x),
            50 * kEpsilon);
}

TEST(MemoryCompressed, WeightsSumToOneWithTheNull) {
  const auto attention = build({{"stride", int64_t{1}}}, 6, true);
  set_diagonal(*attention, 1);
  for (const Weight& weight : attention->weights())
    if (weight.name == "null_v") weight.value.set_value(Tensor::full({1, 6}, 1));
  const Tensor q = bridge::normal({1, 1, 30, 6}, "q"), k = bridge::normal(q.shape(), "k");
  const NoGrad no_grad;
  const Tensor out =
      attention->forward(Var(q), Var(k), Var(Tensor::full(q.shape(), 1)), {true, {}}).value();
  for (const real value : out.values()) EXPECT_NEAR(static_cast<double>(value), 1, 1e-6);
}

// Padding on the left, as popular code has it, would change all blocks with the length.
TEST(MemoryCompressed, RegressionBlocksDoNotMoveWithTheLength) {
  const auto attention = build({}, 6, true);
  const Tensor x = bridge::normal({1, 1, 31, 6}, "x");
  const NoGrad no_grad;
  const Tensor all = attention->forward(Var(x), Var(x), Var(x), {true, {}}).value();
  for (const int64_t length : {1, 2, 3, 29, 30}) {
    const Var part = slice(Var(x), 2, 0, length);
    const Tensor out = attention->forward(part, part, part, {true, {}}).value();
    for (int64_t i = 0; i < out.size(); ++i)
      ASSERT_NEAR(static_cast<double>(out[i]), static_cast<double>(all[i]), 20 * kEpsilon)
          << length;
  }
}

TEST(MemoryCompressed, DecodesAsInParallelFromAShortCache) {
  constexpr int64_t kLen = 20, kDim = 6, kStride = 4;
  const auto attention = build({{"stride", kStride}}, kDim, true);
  const Tensor x = bridge::normal({1, 1, kLen, kDim}, "x"), out({1, 1, 1, kDim});
  const NoGrad no_grad;
  const Tensor all = attention->forward(Var(x), Var(x), Var(x), {true, {}}).value();
  const auto decoder = attention->decoder(1, kLen);
  EXPECT_EQ(decoder->state_bytes(),
            static_cast<int64_t>(sizeof(real)) * 2 * kDim * (1 + kLen / kStride + kStride));
  for (int64_t t = 0; t < kLen; ++t) {
    const Tensor row = slice(Var(x), 2, t, t + 1).value();
    decoder->step(row, row, row, out);
    for (int64_t c = 0; c < kDim; ++c)
      ASSERT_NEAR(static_cast<double>(out[c]), static_cast<double>(all[t * kDim + c]),
                  20 * kEpsilon)
          << t;
  }
}

}  // namespace
}  // namespace attn::memory_compressed_test
