// oracle_rank: of full rank it is softmax attention; below, its weights are the nearest of their
// rank, by the singular values of the weights; and its gradients are those of a power iteration.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/variants/oracle_bridge.h"

namespace attn::oracle_rank_test {
namespace {

using bridge::array_of;
using Square = std::vector<std::vector<double>>;

Square weights_of(const oracle::Array& q, const oracle::Array& k, int64_t b, int64_t h, int64_t n) {
  Square w;
  for (int64_t i = 0; i < n; ++i) {
    w.emplace_back();
    double total = 0;
    for (int64_t j = 0; j < n; ++j) {
      double logit = 0;
      for (int64_t c = 0; c < q.dim; ++c) logit += q.at(b, h, i, c) * k.at(b, h, j, c);
      w.back().push_back(std::exp(logit / std::sqrt(static_cast<double>(q.dim))));
      total += w.back().back();
    }
    for (double& x : w.back()) x /= total;
  }
  return w;
}

// The largest singular value and what it stands for, taken off `w`, by powers of wᵀw.
Square take_largest(Square& w, double& value) {
  const size_t n = w.size();
  std::vector<double> right(n, 1), left(n);
  for (size_t j = 0; j < n; ++j) right[j] += 0.1 * std::sin(static_cast<double>(3 * j + 1));
  for (int step = 0; step < 20000; ++step) {
    double square = 0;
    const std::vector<double> before = right;
    for (size_t i = 0; i < n; ++i) {
      left[i] = 0;
      for (size_t j = 0; j < n; ++j) left[i] += w[i][j] * right[j];
    }
    for (size_t j = 0; j < n; ++j) {
      right[j] = 0;
      for (size_t i = 0; i < n; ++i) right[j] += w[i][j] * left[i];
      square += right[j] * right[j];
    }
    double moved = 0;
    for (size_t j = 0; j < n; ++j) {
      right[j] /= std::sqrt(square);
      moved += (right[j] - before[j]) * (right[j] - before[j]);
    }
    if (moved < 1e-30) break;
  }
  Square part(n, std::vector<double>(n));
  value = 0;
  for (size_t i = 0; i < n; ++i) {
    double product = 0;
    for (size_t j = 0; j < n; ++j) product += w[i][j] * right[j];
    value += product * product;
    for (size_t j = 0; j < n; ++j) part[i][j] = product * right[j];
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) w[i][j] -= part[i][j];
  value = std::sqrt(value);
  return part;
}

oracle::Array expected(const std::vector<oracle::Array>& x, int64_t rank,
                       const std::vector<int64_t>& lengths) {
  oracle::Array out(x[0].batch, x[0].heads, x[0].len, x[0].dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h) {
      const int64_t n = lengths.empty() ? out.len : lengths[static_cast<size_t>(b)];
      Square rest = weights_of(x[0], x[1], b, h, n);
      const auto add = [&](const Square& part) {
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j)
            for (int64_t c = 0; c < out.dim; ++c)
              out.at(b, h, i, c) +=
                  part[static_cast<size_t>(i)][static_cast<size_t>(j)] * x[2].at(b, h, j, c);
      };
      if (rank >= n) add(rest);
      double value = 0;
      for (int64_t r = 0; rank < n && r < rank; ++r) add(take_largest(rest, value));
    }
  return out;
}

TEST(OracleRank, EqualsItsOracle) {
  for (const int64_t length : {1, 2, 3, 9, 24})
    for (const bool padded : {false, true})
      for (const int64_t rank : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << length << ", rank " << rank);
        std::vector<int64_t> lengths;
        if (padded) lengths = {length / 2, length - 1};  // 0 at length 1
        bridge::TwinCase c{
            "oracle_rank", {{"rank", rank}}, {2, 2, length, length, 5, false}, lengths, 2};
        c.step = 1e-5, c.allowed = kIsDouble ? 1e-9 : 1e-5;
        bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
          return [=](const auto& x) { return expected(x, rank, lengths); };
        });
      }
}

// With the identity as values the output is the weights. What the cut leaves is the root of the
// squares of the singular values beyond it: Eckart and Young's bound.
TEST(OracleRank, ErrsByTheSingularValuesBeyondItsRank) {
  constexpr int64_t kLen = 20;
  const Tensor q = bridge::normal({1, 1, kLen, kLen}, "q", 2), k = bridge::normal(q.shape(), "k"),
               identity = Tensor::zeros(q.shape());
  for (int64_t i = 0; i < kLen; ++i) identity[i * (kLen + 1)] = 1;
  const Square full = weights_of(array_of(q), array_of(k), 0, 0, kLen);
  Square rest = full;
  for (int64_t rank = 1; rank <= 5; ++rank) {
    double value = 0, beyond = 0, error = 0;
    take_largest(rest, value);
    for (const auto& row : rest)
      for (const double x : row) beyond += x * x;  // what is left: the values not taken
    const auto attention =
        find_variant("oracle_rank").build({1, kLen, kLen, false, 3, {}}, {{"rank", rank}});
    const NoGrad no_grad;
    const Tensor out = attention->forward(Var(q), Var(k), Var(identity)).value();
    for (int64_t i = 0; i < out.size(); ++i)
      error += std::pow(static_cast<double>(out[i]) -
                            full[static_cast<size_t>(i / kLen)][static_cast<size_t>(i % kLen)],
                        2);
    EXPECT_NEAR(std::sqrt(error), std::sqrt(beyond), kIsDouble ? 1e-10 : 1e-6) << rank;
    EXPECT_GT(value, 0);
  }
}

struct Trained {
  Tensor out;
  std::vector<Tensor> grads;  // of q, k and v
};

// With a seed of ones.
Trained trained(const Tensor& q, const Tensor& k, const Tensor& v, int64_t rank,
                const std::vector<int64_t>& lengths = {}) {
  const auto attention = find_variant("oracle_rank")
                             .build({q.dim(1), q.dim(3), q.dim(2), false, 3, {}}, {{"rank", rank}});
  const Var inputs[3] = {Var(q, true), Var(k, true), Var(v, true)};
  const Var out = attention->forward(inputs[0], inputs[1], inputs[2], {false, lengths});
  out.backward(Tensor::full(out.shape(), 1));
  return {out.value(), {inputs[0].grad(), inputs[1].grad(), inputs[2].grad()}};
}

// Uniform weights, and the same weights in all rows, are of rank 1: of them a divide and conquer
// makes NaN or worse. At any rank they give softmax attention and its gradient of v.
TEST(OracleRank, TakesWeightsOfRankOne) {
  for (const int64_t n : {2, 17, 192, 300, 512})
    for (const bool uniform : {true, false})
      for (const int64_t rank : {1, 16}) {
        SCOPED_TRACE(testing::Message() << n << ", rank " << rank << ", uniform " << uniform);
        const Shape shape{1, 1, n, 4};
        const Tensor q = uniform ? Tensor::zeros(shape) : Tensor::full(shape, 1),
                     k = bridge::normal(shape, "k"), v = bridge::normal(shape, "v");
        const Square w = weights_of(array_of(q), array_of(k), 0, 0, n);
        const Trained got = trained(q, k, v, rank);
        for (int64_t c = 0; c < 4; ++c) {
          double want = 0;
          for (int64_t j = 0; j < n; ++j)
            want += w[0][static_cast<size_t>(j)] * static_cast<double>(v[j * 4 + c]);
          for (int64_t i = 0; i < n; ++i) {
            EXPECT_NEAR(static_cast<double>(got.out[i * 4 + c]), want, kIsDouble ? 1e-12 : 1e-6);
            EXPECT_NEAR(static_cast<double>(got.grads[2][i * 4 + c]),
                        w[0][static_cast<size_t>(i)] * static_cast<double>(n),
                        kIsDouble ? 1e-10 : 1e-4);
          }
        }
        for (const Tensor& grad : got.grads)
          for (int64_t i = 0; i < grad.size(); ++i) EXPECT_TRUE(std::isfinite(grad[i]));
      }
}

// The head that has it gives NaN; the others, and padding, do not.
TEST(OracleRank, AnswersNaNToWhatIsNotFinite) {
  constexpr int64_t kLen = 20, kValid = 18, kDim = 4;
  const Shape shape{1, 2, kLen, kDim};
  for (const int64_t rank : {3, 20})
    for (const real bad : {std::numeric_limits<real>::quiet_NaN(), kInfinity}) {
      const Tensor q = bridge::normal(shape, "q"), k = bridge::normal(shape, "k"),
                   v = bridge::normal(shape, "v");
      k[7 * kDim + 1] = bad;
      const Trained got = trained(q, k, v, rank, {kValid});
      for (int64_t i = 0; i < shape.size(); ++i) {
        const bool spoilt = i / (kLen * kDim) == 0 && i / kDim % kLen < kValid;
        EXPECT_EQ(std::isnan(got.out[i]), spoilt) << i;
        for (const Tensor& grad : got.grads) EXPECT_EQ(std::isnan(grad[i]), spoilt) << i;
      }
    }
}

TEST(OracleRank, SaysWhyLongSequencesCannotRun) {
  const VariantInfo& info = find_variant("oracle_rank");
  const Params params(info.name, info.params);
  EXPECT_FALSE(info.why_not({.q_len = 512, .kv_len = 512}, params));
  EXPECT_NE(info.why_not({.q_len = 513, .kv_len = 513}, params)->find("512"), std::string::npos);
}

}  // namespace
}  // namespace attn::oracle_rank_test
