// Passes of Fourier transforms against the sum written out: each radix, with one turn a group or a
// number, from and to two arrays or complex numbers, by whole vectors and parts of one.
#include "core/simd/fourier_pass.h"

#include <gtest/gtest.h>

#include <complex>
#include <numbers>
#include <vector>

#include "tests/core/simd/on_every_isa.h"

namespace attn::fourier_pass_test {
namespace {

class Passes : public OnEveryIsa {};
// In double, the sum that is written out rounds too.
constexpr double kAllowed = (kIsDouble ? 300 : 60) * kEpsilon;
using Numbers = std::vector<std::complex<double>>;

// Numbers as a pass holds them; complex ones lie one after the other, perhaps swapped.
struct Held {
  std::vector<real> reals;
  int64_t n;
  bool is_joined, is_swapped;

  Held(int64_t count, bool joined, bool swapped)
      : reals(static_cast<size_t>(2 * count + 1), real(7)),
        n(count),
        is_joined(joined),
        is_swapped(swapped) {}
  real& part(int64_t i, bool imaginary) {
    const bool second = is_joined ? imaginary != is_swapped : imaginary;
    return reals[static_cast<size_t>(is_joined ? 2 * i + second : i + second * n)];
  }
  FourierNumbers<real> numbers() {
    return {reals.data(), is_joined ? nullptr : reals.data() + n, is_joined && is_swapped};
  }
};

Numbers normal(int64_t n, const char* name) {
  const std::vector<real> drawn = normals(2 * n, name);
  Numbers numbers;
  for (size_t i = 0; i < drawn.size(); i += 2) numbers.emplace_back(drawn[i], drawn[i + 1]);
  return numbers;
}

void expect_sums(int radix, int64_t stride, bool is_each, Held from, Held to) {
  const int64_t parts = is_each ? 1 : 3, n = radix * parts * stride;
  const Numbers x = normal(n, "from"), turns = normal(n, "turns");
  std::vector<real> turn_re, turn_im;
  for (const std::complex<double>& turn : turns)
    turn_re.push_back(static_cast<real>(turn.real())),
        turn_im.push_back(static_cast<real>(turn.imag()));
  for (int64_t i = 0; i < n; ++i)
    from.part(i, false) = static_cast<real>(x[static_cast<size_t>(i)].real()),
                 from.part(i, true) = static_cast<real>(x[static_cast<size_t>(i)].imag());
  const FourierNumbers<real> source = from.numbers();
  fourier_pass({radix, parts, stride, is_each, turn_re.data(), turn_im.data()},
               {source.re, source.im, source.is_swapped}, to.numbers());
  for (int64_t p = 0; p < parts; ++p)
    for (int64_t k = 0; k < radix; ++k)
      for (int64_t q = 0; q < stride; ++q) {
        const int64_t at = (radix * p + k) * stride + q, group = radix * p + k;
        std::complex<double> want = 0;
        for (int64_t j = 0; j < radix; ++j)
          want +=
              x[static_cast<size_t>((p + parts * j) * stride + q)] *
              std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % radix) / radix);
        if (is_each || k > 0) want *= turns[static_cast<size_t>(is_each ? at : group)];
        ASSERT_NEAR(static_cast<double>(to.part(at, false)), want.real(), kAllowed) << at;
        ASSERT_NEAR(static_cast<double>(to.part(at, true)), want.imag(), kAllowed) << at;
      }
  EXPECT_EQ(to.reals.back(), real(7)) << "behind the last number";
}

TEST_F(Passes, EqualTheSumOfEachRadixWhereverTheNumbersLie) {
  each([] {
    for (const int64_t stride : {3, 16, 21})
      for (const int radix : {2, 3, 4, 5, 8}) {
        SCOPED_TRACE(testing::Message() << "radix " << radix << ", stride " << stride);
        const int64_t n = 3 * radix * stride;
        expect_sums(radix, stride, false, {n, false, false}, {n, false, false});
        for (const bool is_swapped : {false, true}) {
          expect_sums(radix, stride, false, {n, false, false}, {n, true, is_swapped});
          if (radix == 4)
            expect_sums(radix, stride, false, {n, true, is_swapped}, {n, false, false});
        }
        if (radix == 4)
          expect_sums(radix, stride, true, {n / 3, false, false}, {n / 3, false, false});
      }
  });
}

}  // namespace
}  // namespace attn::fourier_pass_test
