// Fourier transforms: of the kind that the build has, and of kind builtin (attn_builtin_fft_tests).
#include "variants/convolution/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "core/base/parallel.h"
#include "core/tensor/tensor.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::fft_test {
namespace {

// Against the sum written out in double: lengths with and without small factors, one number, those
// that are combined of four transforms, and 16 times each kind of factor.

class Transform : public OnEveryIsa {};

// Of √n; in double, the sum that is written out rounds too, n times.
constexpr double kAllowed = (kIsDouble ? 300 : 20) * kEpsilon;

const Complex* numbers_of(const Tensor& t) { return reinterpret_cast<const Complex*>(t.data()); }
Complex* numbers_of(Tensor& t) { return reinterpret_cast<Complex*>(t.data()); }

// Number k of the transform of `from`.
std::complex<double> sum(const Tensor& from, int64_t n, int64_t k, double sign) {
  std::complex<double> total = 0;
  for (int64_t j = 0; j < n; ++j) {
    const Complex x = numbers_of(from)[j];
    total += std::complex<double>(static_cast<double>(x.real()), static_cast<double>(x.imag())) *
             std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) /
                                 static_cast<double>(n));
  }
  return total;
}

double worst_of(const Tensor& from, const Tensor& to, int64_t n, double sign) {
  double worst = 0;
  std::vector<int64_t> asked;
  const int64_t step = n < 100 ? 1 : n / 37;  // every number of short ones
  for (int64_t k = 0; k < n; k += step) asked.push_back(k);
  // The last of each quarter: what is left over where quarters are combined many at once.
  for (int64_t quarter = 1; quarter <= 4; ++quarter) asked.push_back((quarter * n - 1) / 4);
  for (const int64_t k : asked) {
    const Complex got = numbers_of(to)[k];
    const std::complex<double> want = sum(from, n, k, sign);
    worst = std::max({worst, std::abs(want.real() - static_cast<double>(got.real())),
                      std::abs(want.imag() - static_cast<double>(got.imag()))});
  }
  return worst / std::sqrt(static_cast<double>(n));
}

TEST_F(Transform, EqualsTheSumAtEveryKindOfLength) {
  each([] {
    for (const int64_t n :
         {1,   2,   3,   5,    16,   31,   32,   48,   60,   64,   80,   112,   128,
          240, 256, 512, 1000, 1152, 2048, 3600, 4096, 4100, 4099, 8192, 10000, 16384}) {
      const Tensor from = Tensor::normal({2 * n}, rng(1, "from"));
      Tensor to({2 * n});
      const Fft fft(n);  // not one that another instruction set has planned
      fft.forward(numbers_of(from), numbers_of(to));
      EXPECT_LE(worst_of(from, to, n, -1), kAllowed) << n;
      fft.backward(numbers_of(from), numbers_of(to));
      EXPECT_LE(worst_of(from, to, n, 1), kAllowed) << n;
      EXPECT_EQ(from[0], Tensor::normal({2 * n}, rng(1, "from"))[0]) << "the input of " << n;
    }
  });
}

// A thread's arrays grow with its lengths and stay; each call must give the same bits.
TEST(Fft, SameBitsAfterTransformsOfOtherLengths) {
  const int64_t n = 1024;
  const Tensor from = Tensor::normal({2 * n}, rng(3, "from"));
  Tensor first({2 * n}), again({2 * n});
  Fft::of(n)->forward(numbers_of(from), numbers_of(first));
  for (const int64_t other : {4096, 48, 100}) {
    const Tensor x = Tensor::normal({2 * other}, rng(4, "from"));
    Tensor to({2 * other});
    Fft::of(other)->backward(numbers_of(x), numbers_of(to));
  }
  Fft::of(n)->forward(numbers_of(from), numbers_of(again));
  for (int64_t i = 0; i < 2 * n; ++i) ASSERT_EQ(first[i], again[i]) << i;
}

TEST(Fft, PlansAreSharedAndMadeOnManyThreadsAtOnce) {
  EXPECT_EQ(Fft::of(640), Fft::of(640));
  const ScopedThreads four(4);
  constexpr int64_t kLengths = 100;  // more than are kept
  std::vector<double> off(kLengths);
  parallel_for(kLengths, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = 20 + i % 70;
      const Tensor from = Tensor::normal({2 * n}, rng(2, "from"));
      Tensor to({2 * n});
      Fft::of(n)->forward(numbers_of(from), numbers_of(to));
      off[static_cast<size_t>(i)] = worst_of(from, to, n, -1);
    }
  });
  for (const double value : off) EXPECT_LE(value, kAllowed);
}

TEST(Fft, AFastLengthIsAtMostAQuarterLonger) {
  EXPECT_EQ(fast_length(1), 1);
  EXPECT_EQ(fast_length(256), 256);
  EXPECT_EQ(fast_length(257), 288);
  EXPECT_EQ(fast_length(1025), 1152);
  for (int64_t least = 1; least < 3000; ++least) {
    int64_t odd = fast_length(least);
    EXPECT_GE(odd, least);
    EXPECT_LE(4 * odd, 5 * least + 4) << least;
    while (odd % 2 == 0) odd /= 2;
    EXPECT_TRUE(odd == 1 || odd == 3 || odd == 5 || odd == 9 || odd == 15) << least;
  }
}

TEST(Fft, RefusesNoNumbers) { EXPECT_THROW(Fft::of(0), Error); }

}  // namespace
}  // namespace attn::fft_test
