// Products of mixed precision against sums in double of numbers rounded one by one, on every
// instruction set; what stays in float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/simd/bfloat16_product.h"
#include "core/simd/rounded_product.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::rounded_product_test {
namespace {

std::vector<double> rounded(const std::vector<real>& x) {
  std::vector<double> result;
  for (const real number : x)
    result.push_back(double(to_float(to_bfloat16(static_cast<float>(number)))));
  return result;
}

struct Case {
  int64_t rows, cols, depth;
  bool is_transposed, is_packed, adds, has_factors;
};

// The left operand as rows or as columns, the right one as rows or as panels.
void expect_rounded_sums(const Case& t) {
  const std::vector<real> a = normals(t.rows * t.depth, "a"), b = normals(t.depth * t.cols, "b");
  std::vector<real> panels(static_cast<size_t>(packed_reals(t.cols, t.depth)));
  for (int64_t k = 0; k < t.depth; ++k)
    for (int64_t j = 0; j < t.cols; ++j)
      panels[static_cast<size_t>(j / kPanel * kPanel * t.depth + k * kPanel + j % kPanel)] =
          b[static_cast<size_t>(k * t.cols + j)];
  const Left left = t.is_transposed ? Left{a.data(), 1, t.rows} : Left{a.data(), t.depth, 1};
  const Right right = t.is_packed ? packed(panels.data(), t.depth) : Right{b.data(), t.cols};
  const int64_t c_row = t.cols + 3;
  constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();
  std::vector<real> c(static_cast<size_t>(t.rows * c_row), t.adds ? real(2) : kNaN);
  std::vector<real> factors(static_cast<size_t>(t.rows), real(0.5));
  factors[0] = 0;
  if (t.has_factors) std::fill_n(c.begin(), t.cols, kNaN);  // is ignored
  const std::vector<real> before = c;
  const std::vector<double> x = rounded(a), y = rounded(b);
  const RoundedProducts scope;
  if (t.adds)
    add_mixed_product(t.rows, t.cols, t.depth, left, right, c.data(), c_row,
                      t.has_factors ? factors.data() : nullptr);
  else
    mixed_product(t.rows, t.cols, t.depth, left, right, c.data(), c_row);
  for (int64_t i = 0; i < t.rows; ++i) {
    for (int64_t j = 0; j < t.cols; ++j) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < t.depth; ++k) {
        const int64_t at = t.is_transposed ? k * t.rows + i : i * t.depth + k;
        const double term = x[static_cast<size_t>(at)] * y[static_cast<size_t>(k * t.cols + j)];
        sum += term, size += std::abs(term);
      }
      if (t.adds) sum += t.has_factors ? (i == 0 ? 0 : 1) : 2;
      // Products are exact. A sum of depth terms in float errs by few roundings of its size: the
      // errors of single terms have random signs.
      ASSERT_LE(std::abs(double(c[static_cast<size_t>(i * c_row + j)]) - sum),
                8 * double(kEpsilon) * (size + 2))
          << t.rows << "x" << t.cols << "x" << t.depth << " at " << i << ", " << j
          << (t.is_transposed ? " transposed" : "") << (t.is_packed ? " packed" : "");
    }
    for (int64_t j = t.cols; j < c_row; ++j) {  // behind the row
      const auto at = static_cast<size_t>(i * c_row + j);
      ASSERT_TRUE(c[at] == before[at] || std::isnan(before[at])) << i << ", " << j;
    }
  }
}

using RoundedProduct = OnEveryIsa;

TEST_F(RoundedProduct, EveryBorder) {
  each([] {
    for (const int64_t rows : {24, 25, 193})
      for (const int64_t cols : {16, 63, 65, 130})
        for (const int64_t depth : {16, 17, 257, 513})
          for (const bool is_transposed : {false, true})
            for (const bool is_packed : {false, true}) {
              expect_rounded_sums({rows, cols, depth, is_transposed, is_packed, false, false});
              expect_rounded_sums({rows, cols, depth, is_transposed, is_packed, true, false});
              expect_rounded_sums({rows, cols, depth, is_transposed, is_packed, true, true});
            }
  });
}

// Neither without a scope, nor where a product is small, does anything change.
TEST_F(RoundedProduct, OthersAreThoseOfFloat32) {
  each([] {
    const std::vector<real> a = normals(64 * 64, "a"), b = normals(64 * 64, "b");
    std::vector<real> wanted(64 * 64), found(64 * 64);
    const auto expect_same = [&](int64_t rows, int64_t cols, int64_t depth, bool is_same) {
      product(rows, cols, depth, {a.data(), 64, 1}, {b.data(), 64}, wanted.data(), 64);
      mixed_product(rows, cols, depth, {a.data(), 64, 1}, {b.data(), 64}, found.data(), 64);
      EXPECT_EQ(found == wanted, is_same) << rows << "x" << cols << "x" << depth;
      found = wanted;
    };
    expect_same(64, 64, 64, true);
    {
      const RoundedProducts scope;
      EXPECT_TRUE(RoundedProducts::active());
      expect_same(64, 64, 64, false);
      expect_same(1, 64, 64, true);
      expect_same(64, 8, 64, true);
      expect_same(64, 64, 8, true);
    }
    EXPECT_FALSE(RoundedProducts::active());
    expect_same(64, 64, 64, true);
  });
}

// Numbers that are not finite stay so.
TEST_F(RoundedProduct, NaNIsKept) {
  each([] {
    std::vector<real> a = normals(24 * 16, "a"), b = normals(16 * 16, "b"), c(24 * 16);
    a[3 * 16 + 7] = std::numeric_limits<real>::quiet_NaN();
    const RoundedProducts scope;
    mixed_product(24, 16, 16, {a.data(), 16, 1}, {b.data(), 16}, c.data(), 16);
    for (size_t i = 0; i < c.size(); ++i) EXPECT_EQ(std::isnan(c[i]), i / 16 == 3) << i;
  });
}

}  // namespace
}  // namespace attn::rounded_product_test
