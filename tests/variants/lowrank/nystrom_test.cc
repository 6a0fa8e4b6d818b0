// nystrom against explicit matrices of weights and their inverse; one landmark, which is attention
// of the mean query; as many as positions, which is softmax attention; batch entries that know
// nothing of each other; and its pieces at the borders of their loops.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/ops.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/lowrank/lowrank.h"

namespace attn::nystrom_test {
namespace {

using bridge::array_of;

// Rows below each other, one matrix.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> x;
  Matrix(int64_t r, int64_t c) : rows(r), cols(c), x(static_cast<size_t>(r * c), 0.0) {}
  double& operator()(int64_t i, int64_t j) { return x[static_cast<size_t>(i * cols + j)]; }
  double operator()(int64_t i, int64_t j) const { return x[static_cast<size_t>(i * cols + j)]; }
};

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.cols; ++j)
      for (int64_t k = 0; k < a.cols; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}

Matrix softmax_of(const Matrix& q, const Matrix& k) {
  Matrix w(q.rows, k.rows);
  for (int64_t i = 0; i < w.rows; ++i) {
    double total = 0;
    for (int64_t j = 0; j < w.cols; ++j) {
      double logit = 0;
      for (int64_t c = 0; c < q.cols; ++c) logit += q(i, c) * k(j, c);
      total += w(i, j) = std::exp(logit / std::sqrt(static_cast<double>(q.cols)));
    }
    for (int64_t j = 0; j < w.cols; ++j) w(i, j) /= total;
  }
  return w;
}

// Means over segments, as a product with a matrix of shares.
Matrix means_of(const Matrix& x, int64_t count) {
  Matrix share(count, x.rows);
  for (int64_t s = 0; s < count; ++s) {
    const int64_t begin = s * x.rows / count, end = (s + 1) * x.rows / count;
    for (int64_t i = begin; i < end; ++i) share(s, i) = 1 / static_cast<double>(end - begin);
  }
  return share * x;
}

Matrix iterated(const Matrix& a, int64_t steps) {
  const int64_t m = a.rows;
  double norm = 0;  // rows sum to one
  for (int64_t j = 0; j < m; ++j) {
    double column = 0;
    for (int64_t i = 0; i < m; ++i) column += a(i, j);
    norm = std::fmax(norm, column);
  }
  Matrix z(m, m);
  for (int64_t i = 0; i < m * m; ++i) z(i / m, i % m) = a(i % m, i / m) / norm;
  for (int64_t t = 0; t < steps; ++t) {  // multiplied out: Z(13 - 15P + 7P² - P³)/4
    const Matrix p = a * z, p2 = p * p, p3 = p2 * p;
    Matrix sum(m, m);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < m; ++j)
        sum(i, j) = ((i == j ? 13 : 0) - 15 * p(i, j) + 7 * p2(i, j) - p3(i, j)) / 4;
    z = z * sum;
  }
  return z;
}

// Gauss and Jordan with pivots.
Matrix inverse(Matrix a) {
  const int64_t m = a.rows;
  Matrix b(m, m);
  for (int64_t i = 0; i < m; ++i) b(i, i) = 1;
  for (int64_t k = 0; k < m; ++k) {
    int64_t pivot = k;
    for (int64_t i = k; i < m; ++i)
      if (std::fabs(a(i, k)) > std::fabs(a(pivot, k))) pivot = i;
    for (int64_t j = 0; j < m; ++j)
      std::swap(a(k, j), a(pivot, j)), std::swap(b(k, j), b(pivot, j));
    const double diagonal = a(k, k);
    for (int64_t j = 0; j < m; ++j) a(k, j) /= diagonal, b(k, j) /= diagonal;
    for (int64_t i = 0; i < m; ++i) {
      if (i == k) continue;
      const double factor = a(i, k);
      for (int64_t j = 0; j < m; ++j) a(i, j) -= factor * a(k, j), b(i, j) -= factor * b(k, j);
    }
  }
  return b;
}

struct Setting {
  int64_t landmarks, steps, convolution;  // steps 0: exact
  std::vector<int64_t> lengths = {};
};

oracle::Array expected(const std::vector<oracle::Array>& x, const Setting& s) {
  oracle::Array out(x[0].batch, x[0].heads, x[0].len, x[0].dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h) {
      const int64_t n = s.lengths.empty() ? out.len : s.lengths[static_cast<size_t>(b)];
      if (n == 0) continue;
      const auto rows = [&](const oracle::Array& from, int64_t count) {
        Matrix m(count, out.dim);
        for (int64_t i = 0; i < count * out.dim; ++i)
          m(i / out.dim, i % out.dim) = from.at(b, h, i / out.dim, i % out.dim);
        return m;
      };
      const int64_t m = std::min(n, s.landmarks);
      const Matrix q = rows(x[0], out.len), k = rows(x[1], n), v = rows(x[2], n),
                   of_q = means_of(rows(x[0], n), m), of_k = means_of(k, m),
                   between = softmax_of(of_q, of_k);
      const Matrix turned = s.steps > 0 ? iterated(between, s.steps) : inverse(between);
      const Matrix result = softmax_of(q, of_k) * (turned * (softmax_of(of_q, k) * v));
      for (int64_t i = 0; i < out.len; ++i)
        for (int64_t c = 0; c < out.dim; ++c) {
          out.at(b, h, i, c) = result(i, c);
          for (int64_t j = 0; i < n && j < n; ++j)
            if (const int64_t t = j - i + s.convolution / 2; t >= 0 && t < s.convolution)
              out.at(b, h, i, c) += x[3].x[static_cast<size_t>(h * s.convolution + t)] * v(j, c);
        }
    }
  return out;
}

std::map<std::string, ParamValue> given(const Setting& s) {
  return {{"landmarks", s.landmarks}, {"iterations", s.steps}, {"convolution", s.convolution}};
}

TEST(Nystrom, EqualsItsOracle) {
  for (const int64_t length : {1, 2, 3, 4, 24, 37})
    for (const bool padded : {false, true})
      for (Setting s : {Setting{3, 6, 0}, {4, 1, 5}, {2, 0, 0}, {3, 0, 3}}) {
        SCOPED_TRACE(testing::Message() << length << ", iterations " << s.steps);
        if (padded) s.lengths = {length / 2, length - 1};  // 0 at length 1
        // Weights between landmarks may be close to singular: the exact inverse then amplifies.
        bridge::TwinCase c{"nystrom", given(s), {2, 2, length, length, 5, false}, s.lengths, 3};
        if (s.steps == 0) c.step = 1e-6, c.allowed = 2e4 * kEpsilon;
        bridge::expect_twin(c, [&](const Attention&, const Tensor&) {
          return [=](const auto& x) { return expected(x, s); };
        });
      }
}

Tensor output(const Setting& s, const Tensor& q, const Tensor& k, const Tensor& v,
              const std::vector<int64_t>& lengths = {}) {
  const auto attention =
      find_variant("nystrom").build({q.dim(1), q.dim(3), q.dim(2), false, 3, {}}, given(s));
  const NoGrad no_grad;
  return attention->forward(Var(q), Var(k), Var(v), {false, lengths}).value();
}

TEST(Nystrom, OneLandmarkIsAttentionOfTheMeanQuery) {
  const Tensor q = bridge::normal({1, 1, 30, 6}, "q"), k = bridge::normal(q.shape(), "k"),
               v = bridge::normal(q.shape(), "v");
  oracle::Array mean(1, 1, 30, 6);
  for (int64_t i = 0; i < 30; ++i)
    for (int64_t j = 0; j < 30; ++j)
      for (int64_t c = 0; c < 6; ++c) mean.at(0, 0, i, c) += static_cast<double>(q[j * 6 + c]) / 30;
  const oracle::Array want = oracle::softmax_attention(mean, array_of(k), array_of(v), {});
  for (const int64_t steps : {0, 6})
    EXPECT_LE(bridge::relative_error(output({1, steps, 0}, q, k, v), want.x), 50 * kEpsilon);
}

TEST(Nystrom, AsManyLandmarksAsPositionsIsSoftmaxAttention) {
  const Tensor q = bridge::normal({2, 1, 40, 8}, "q"), k = bridge::normal(q.shape(), "k"),
               v = bridge::normal(q.shape(), "v");
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{}, {40, 17}}) {
    const oracle::Array want =
        oracle::softmax_attention(array_of(q), array_of(k), array_of(v), {false, lengths});
    EXPECT_LE(bridge::relative_error(output({40, 0, 0}, q, k, v, lengths), want.x),
              kIsDouble ? 1e-11 : 2e-5);
    // Six iterations are not enough, and are far from it.
    EXPECT_GE(bridge::relative_error(output({40, 6, 0}, q, k, v, lengths), want.x), 1e-3);
  }
}

TEST(Nystrom, WeightsOfTheExactInverseSumToOne) {
  const Tensor q = bridge::normal({1, 2, 50, 8}, "q", 2), k = bridge::normal(q.shape(), "k");
  const Tensor out = output({7, 0, 0}, q, k, Tensor::full(q.shape(), 1));
  for (const real value : out.values()) EXPECT_NEAR(static_cast<double>(value), 1, 1e-4);
}

// Popular code starts the iteration from the largest norm of the whole batch.
TEST(Nystrom, RegressionAnEntryDoesNotKnowItsBatchMates) {
  const Tensor q = bridge::normal({2, 1, 33, 6}, "q"), k = bridge::normal(q.shape(), "k"),
               v = bridge::normal(q.shape(), "v");
  const Tensor before = output({8, 3, 0}, q, k, v);
  for (int64_t i = q.size() / 2; i < q.size(); ++i) k[i] *= 5;  // of the second entry
  const Tensor after = output({8, 3, 0}, q, k, v);
  for (int64_t i = 0; i < q.size() / 2; ++i) ASSERT_EQ(before[i], after[i]);
  EXPECT_FALSE(bridge::same_bits(before, after));
}

TEST(HeadConvolution, EqualsItsSums) {
  for (const int64_t length : {1, 2, 5, 6, 7, 12, 13, 70})
    for (const int64_t kernel : {1, 3, 9, 33})
      for (const std::vector<int64_t>& lengths :
           {std::vector<int64_t>{}, {length / 2, length - 1}}) {
        SCOPED_TRACE(testing::Message() << length << ", kernel " << kernel);
        const Tensor x = bridge::normal({2, 2, length, 3}, "x"),
                     filter = bridge::normal({2, kernel}, "f");
        bridge::fill_padding(x, lengths, bridge::kNaN);
        const Var rows(x, true), taps(filter, true);
        const Var out = head_convolution(rows, taps, lengths);
        const auto twin = [&](const std::vector<oracle::Array>& a) {
          oracle::Array sum(2, 2, length, 3);
          for (int64_t i = 0; i < 4 * length * length * 3; ++i) {
            const int64_t c = i % 3, to = i / 3 % length, from = i / 3 / length % length,
                          h = i / 3 / length / length % 2, b = i / 3 / length / length / 2;
            const int64_t n = lengths.empty() ? length : lengths[static_cast<size_t>(b)];
            const int64_t t = from - to + kernel / 2;
            if (to < n && from < n && t >= 0 && t < kernel)
              sum.at(b, h, to, c) += a[1].at(0, 0, h, t) * a[0].at(b, h, from, c);
          }
          return sum;
        };
        EXPECT_LE(bridge::relative_error(out.value(), twin({array_of(x), array_of(filter)}).x),
                  20 * kEpsilon);
        const Tensor seed = bridge::normal(x.shape(), "seed");
        out.backward(seed);
        bridge::expect_gradients({x, filter}, {rows.grad(), taps.grad()}, seed, twin);
      }
}

}  // namespace
}  // namespace attn::nystrom_test
