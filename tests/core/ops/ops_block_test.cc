// Ops of the layers around a mixer against plain loops in double, and their gradients.

#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_block_test {
namespace {

constexpr double kClose = 200 * static_cast<double>(kEpsilon);

double largest_difference(const Tensor& a, const Tensor& b) {
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    most = std::fmax(most, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

TEST(OpsBlock, Silu) {
  const Tensor x = random_tensor({5, 77}, 1), y = silu(Var(x)).value();
  for (int64_t i = 0; i < x.size(); ++i) {
    const double from = static_cast<double>(x[i]);
    ASSERT_NEAR(static_cast<double>(y[i]), from * sigma(from), kClose);
  }
  expect_gradients([](const std::vector<Var>& in) { return silu(in[0]); },
                   {random_tensor({3, 7}, 2)});
}

// One position, one channel after the other.
double convolved(const Tensor& x, const Tensor& taps, const Tensor& bias, int64_t b, int64_t t,
                 int64_t c) {
  const int64_t len = x.dim(1), wide = x.dim(2), count = taps.dim(0);
  double sum = bias.defined() ? static_cast<double>(bias[c]) : 0;
  for (int64_t back = 0; back < count && back <= t; ++back)
    sum += static_cast<double>(taps[(count - 1 - back) * wide + c]) *
           static_cast<double>(x[(b * len + t - back) * wide + c]);
  return sum;
}

TEST(OpsBlock, ShortConvolution) {
  for (const int64_t len : {1, 2, 3, 9, 300})
    for (const int64_t count : {1, 2, 4})
      for (const bool activated : {false, true})
        for (const bool biased : {false, true}) {
          const Tensor x = random_tensor({2, len, 5}, 3), taps = random_tensor({count, 5}, 4),
                       bias = biased ? random_tensor({5}, 5) : Tensor();
          const Var of = biased ? Var(bias) : Var();
          for (const int threads : {1, 2}) {
            set_threads(threads);
            const Tensor y = short_convolution(Var(x), Var(taps), of, activated).value();
            for (int64_t i = 0; i < y.size(); ++i) {
              const double sum = convolved(x, taps, bias, i / 5 / len, i / 5 % len, i % 5);
              ASSERT_NEAR(static_cast<double>(y[i]), activated ? sum * sigma(sum) : sum, kClose);
            }
          }
          set_threads(1);
        }
  for (const int64_t len : {1, 3, 6})
    for (const bool activated : {false, true}) {
      expect_gradients(
          [=](const std::vector<Var>& in) {
            return short_convolution(in[0], in[1], in[2], activated);
          },
          {random_tensor({2, len, 3}, 6), random_tensor({4, 3}, 7), random_tensor({3}, 8)});
      expect_gradients(
          [=](const std::vector<Var>& in) {
            return short_convolution(in[0], in[1], {}, activated);
          },
          {random_tensor({2, len, 3}, 6), random_tensor({2, 3}, 7)});
    }
  EXPECT_THROW(short_convolution(Var(Tensor({2, 3, 4})), Var(Tensor({2, 3})), {}, true), Error);
  EXPECT_THROW(
      short_convolution(Var(Tensor({2, 3, 4})), Var(Tensor({2, 4})), Var(Tensor({3})), true),
      Error);
}

// What is recorded for gradients does not change the answer, and gradients of many rows are those
// of one thread.
TEST(OpsBlock, ShortConvolutionInPieces) {
  const Tensor x = random_tensor({2, 700, 9}, 1), taps = random_tensor({4, 9}, 2),
               bias = random_tensor({9}, 3), seed = random_tensor({2, 700, 9}, 4);
  std::vector<Tensor> first;
  for (const int threads : {1, 2}) {
    set_threads(threads);
    const Var a(x, true), b(taps, true), c(bias, true);
    const Var y = short_convolution(a, b, c, true);
    EXPECT_EQ(largest_difference(y.value(),
                                 short_convolution(Var(x), Var(taps), Var(bias), true).value()),
              0);
    y.backward(seed);
    const std::vector<Tensor> now = {a.grad(), b.grad(), c.grad()};
    for (size_t i = 0; i < first.size(); ++i)
      EXPECT_EQ(largest_difference(now[i], first[i]), 0) << i;
    first = now;
  }
  set_threads(1);
}

TEST(OpsBlock, MixRows) {
  const Tensor x = random_tensor({2, 300, 5}, 1), other = random_tensor({2, 300, 5}, 2),
               share = random_tensor({5}, 3), more = random_tensor({2, 300, 5}, 4);
  for (const bool added : {false, true}) {
    const Tensor y = mix_rows(Var(x), Var(other), Var(share), added ? Var(more) : Var()).value();
    for (int64_t i = 0; i < x.size(); ++i) {
      const auto at = [i](const Tensor& t) { return static_cast<double>(t[i]); };
      const double by = static_cast<double>(share[i % 5]) + (added ? at(more) : 0);
      ASSERT_NEAR(at(y), at(x) + (at(other) - at(x)) * by, kClose);
    }
  }
  const std::vector<Tensor> in = {random_tensor({3, 5}, 5), random_tensor({3, 5}, 6),
                                  random_tensor({5}, 7), random_tensor({3, 5}, 8)};
  expect_gradients([](const std::vector<Var>& v) { return mix_rows(v[0], v[1], v[2], v[3]); }, in);
  expect_gradients([](const std::vector<Var>& v) { return mix_rows(v[0], v[1], v[2], {}); },
                   {in[0], in[1], in[2]});
  // The gradient of the share is a sum over pieces: that of all rows is that of each hundred.
  const auto of_share = [&](int64_t begin, int64_t end) {
    const Var s(share, true);
    const auto part = [&](const Tensor& t) {
      return slice(reshape(Var(t), {600, 5}), 0, begin, end);
    };
    mix_rows(part(x), part(other), s, {}).backward(Tensor::full({end - begin, 5}, 1));
    return s.grad();
  };
  const Tensor all = of_share(0, 600);
  for (int64_t j = 0; j < 5; ++j) {
    double sum = 0;
    for (int64_t begin = 0; begin < 600; begin += 100)
      sum += static_cast<double>(of_share(begin, begin + 100)[j]);
    EXPECT_NEAR(static_cast<double>(all[j]), sum, 10 * kClose);
  }
  EXPECT_THROW(mix_rows(Var(x), Var(other), Var(more), {}), Error);
}

}  // namespace
}  // namespace attn::ops_block_test
