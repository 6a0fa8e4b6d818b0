// Products of bfloat16 in pairs on every instruction set, against sums in double; rounding to pairs
// and packing, number by number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/rng.h"
#include "core/simd/bfloat16_product.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::bfloat16_product_test {
namespace {

std::vector<BFloat16> numbers(int64_t count, const char* name) {
  Rng random = rng(3, name);
  std::vector<BFloat16> result;
  for (int64_t i = 0; i < count; i++)
    result.push_back(to_bfloat16(static_cast<float>(random.normal())));
  return result;
}

using BFloat16Product = OnEveryIsa;

// a [rows, depth] · b [depth, cols], where b lies in panels of keys or as rows of values; with or
// without memory that is fetched meanwhile.
void expect_sums(int64_t rows, int64_t cols, int64_t depth, bool is_of_keys, bool adds,
                 bool fetches) {
  const std::vector<BFloat16> a = numbers(rows * depth, "a"), b = numbers(cols * depth, "b");
  const int64_t pairs = pairs_of(depth), padded = (cols + kPanel - 1) / kPanel * kPanel;
  std::vector<BFloat16Pair> left(static_cast<size_t>(rows * pairs)),
      right(static_cast<size_t>(pairs * padded), 0x7fc07fc0);
  pack_pairs(a.data(), rows, depth, left.data());
  PairedRight packed{right.data(), cols};
  if (is_of_keys) {
    pack_pairs_transposed(b.data(), cols, depth, right.data());
    packed = {right.data(), kPanel, pairs * kPanel};
  } else {
    interleave_rows(b.data(), depth, cols, right.data());
  }
  if (fetches) packed.next = right.data() + 1;
  constexpr real kNaN = std::numeric_limits<real>::quiet_NaN();
  std::vector<real> c(static_cast<size_t>(rows * (cols + 1)), adds ? real(2) : kNaN);
  std::vector<real> factors(static_cast<size_t>(rows), real(0.5));
  factors[0] = 0;
  if (adds) {
    std::fill_n(c.begin(), cols, kNaN);  // is ignored
    add_paired_product(rows, cols, pairs, {left.data(), pairs}, packed, c.data(), cols + 1,
                       factors.data());
  } else {
    paired_product(rows, cols, pairs, {left.data(), pairs}, packed, real(0.25), c.data(), cols + 1);
  }
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) {
      double sum = 0, size = 0;
      for (int64_t k = 0; k < depth; k++) {
        const auto at = static_cast<size_t>(is_of_keys ? j * depth + k : k * cols + j);
        const double term =
            double(to_float(a[static_cast<size_t>(i * depth + k)])) * double(to_float(b[at]));
        sum += term, size += std::abs(term);
      }
      const double wanted = adds ? sum + (i == 0 ? 0.0 : 1.0) : 0.25 * sum;
      // Products are exact; the sums are rounded as in product_test.cc.
      ASSERT_LE(std::abs(double(c[static_cast<size_t>(i * (cols + 1) + j)]) - wanted),
                8 * double(kEpsilon) * (size + 1))
          << rows << "x" << cols << "x" << depth << " at " << i << ", " << j;
    }
}

TEST_F(BFloat16Product, EveryBorder) {
  each([] {
    for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 13})
      for (const int64_t cols : {1, 5, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 129})
        for (const int64_t depth : {1, 2, 5, 64, 65})
          for (const bool is_of_keys : {false, true})
            for (const bool adds : {false, true})
              for (const bool fetches : {false, true})
                expect_sums(rows, cols, depth, is_of_keys, adds, fetches);
  });
}

TEST_F(BFloat16Product, RoundsToPairsAsOneByOne) {
  each([] {
    constexpr int64_t kStride = 80;
    Rng random = rng(4, "pairs");
    for (const int64_t count : {2, 4, 14, 16, 18, 32, 34, 64, 78}) {
      std::vector<real> x(3 * kStride);
      for (real& value : x) value = static_cast<real>(random.normal());
      x[1] = real(1) + real(1) / 256;  // a tie, to the even one below
      x[0] = real(1) + real(3) / 256;  // and above
      x[kStride] = std::numeric_limits<real>::quiet_NaN();
      x[kStride + 1] = -kInfinity;
      const std::vector<real> given = x;
      const PairedLeft found = round_to_pairs(3, count, x.data(), kStride);
      for (int64_t i = 0; i < 3; i++)
        for (int64_t p = 0; p < count / 2; p++) {
          BFloat16Pair pair;
          std::memcpy(&pair, found.data + i * found.row + p, sizeof(pair));
          const auto at = static_cast<size_t>(i * kStride + 2 * p);
          const auto wanted = pair_of(to_bfloat16(static_cast<float>(given[at])),
                                      to_bfloat16(static_cast<float>(given[at + 1])));
          ASSERT_EQ(pair, wanted) << "row " << i << ", pair " << p << " of " << count;
        }
    }
  });
}

TEST_F(BFloat16Product, NaNIsKept) {
  each([] {
    const std::vector<BFloat16Pair> a(4, 0x3f803f80);  // ones
    std::vector<BFloat16Pair> b(4 * 16, 0x3f803f80);
    b[2 * 16 + 5] = 0x3f807fc0;
    std::vector<real> c(16);
    paired_product(1, 16, 4, {a.data(), 4}, {b.data(), 16}, 1, c.data(), 16);
    for (size_t j = 0; j < 16; j++) EXPECT_EQ(std::isnan(c[j]), j == 5) << j;
  });
}

}  // namespace
}  // namespace attn::bfloat16_product_test
