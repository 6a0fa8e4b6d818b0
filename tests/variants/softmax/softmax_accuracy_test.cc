// How far float attention is from the truth: rows of a long sequence against double precision, and
// against the plain float loops that a reader would write.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/simd/isa.h"
#include "variants/softmax/softmax_attention.h"

namespace attn::softmax_accuracy_test {
namespace {

constexpr int64_t kWidth = 64;

// Row i of softmax(q·kᵀ/√d)·v, every sum one term after the other in the type T.
template <class T>
std::vector<double> plain_row(const Tensor& q, const Tensor& k, const Tensor& v, int64_t i) {
  const int64_t n = k.dim(2);
  std::vector<T> weights;
  for (int64_t j = 0; j < n; ++j) {
    T dot = 0;
    for (int64_t c = 0; c < kWidth; ++c) dot += T(q[i * kWidth + c]) * T(k[j * kWidth + c]);
    weights.push_back(dot / std::sqrt(T(kWidth)));
  }
  const T row_max = *std::max_element(weights.begin(), weights.end());
  T row_sum = 0;
  for (T& weight : weights) row_sum += weight = std::exp(weight - row_max);
  std::vector<T> sums(kWidth, T(0));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t c = 0; c < kWidth; ++c)
      sums[static_cast<size_t>(c)] += weights[static_cast<size_t>(j)] * T(v[j * kWidth + c]);
  std::vector<double> row;
  for (const T sum : sums) row.push_back(double(sum / row_sum));
  return row;
}

struct Errors {
  double ours = 0, plain = 0;  // relative, over all sampled rows
};

Errors errors(const Tensor& q, const Tensor& k, const Tensor& v) {
  const NoGrad no_grad;
  const Var out = softmax_attention(Var(q), Var(k), Var(v));
  double ours = 0, plain = 0, size = 0;
  for (int64_t i = 0; i < q.dim(2); i += 97) {
    const std::vector<double> truth = plain_row<double>(q, k, v, i);
    const std::vector<double> loops = plain_row<float>(q, k, v, i);
    for (size_t c = 0; c < truth.size(); ++c) {
      const double got = double(out.value()[i * kWidth + static_cast<int64_t>(c)]);
      ours += std::pow(got - truth[c], 2);
      plain += std::pow(loops[c] - truth[c], 2);
      size += std::pow(truth[c], 2);
    }
  }
  return {std::sqrt(ours / size), std::sqrt(plain / size)};
}

TEST(SoftmaxAccuracy, UnitVarianceAtFourThousand) {
  const Shape shape{1, 1, 4096, kWidth};
  const Errors e = errors(Tensor::normal(shape, rng(1, "q")), Tensor::normal(shape, rng(1, "k")),
                          Tensor::normal(shape, rng(1, "v")));
  EXPECT_LE(e.ours, 1e-6) << isa();
  RecordProperty("relative_error", fmt::format("{:.2e}", e.ours));
}

TEST(SoftmaxAccuracy, NoWorseThanPlainLoopsAtLogitsOfFifty) {
  const Shape shape{1, 1, 1024, kWidth};
  const Tensor q = Tensor::normal(shape, rng(2, "q")), k = Tensor::normal(shape, rng(2, "k"));
  double most = 0;
  for (int64_t i = 0; i < q.dim(2); ++i)
    for (int64_t j = 0; j < k.dim(2); ++j) {
      double dot = 0;
      for (int64_t c = 0; c < kWidth; ++c)
        dot += double(q[i * kWidth + c]) * double(k[j * kWidth + c]);
      most = std::max(most, std::abs(dot) / 8);
    }
  for (real& value : q.values()) value *= real(50 / most);
  const Errors e = errors(q, k, Tensor::normal(shape, rng(2, "v")));
  EXPECT_LE(e.ours, 3 * e.plain) << isa() << ": " << e.ours << " against " << e.plain;
}

}  // namespace
}  // namespace attn::softmax_accuracy_test
