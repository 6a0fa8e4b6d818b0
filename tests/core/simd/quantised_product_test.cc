// Rounding to 8 and 4 bits, and the products with what was rounded, on every instruction set:
// against sums in double over numbers that are rounded one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/simd/quantised_product.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::quantised_product_test {
namespace {

// The numbers of one position as 32 of them share a scale.
std::vector<double> rounded(const real* x, const QuantisedLayout& layout) {
  std::vector<double> row(static_cast<size_t>(layout.dim));
  for (int64_t first = 0; first < layout.dim; first += 32) {
    const int64_t end = std::min(first + 32, layout.dim);
    float most = 0;
    for (int64_t c = first; c < end; ++c) most = std::max(most, std::abs(float(x[c])));
    const float scale = to_float(to_bfloat16(most / float(layout.largest())));
    for (int64_t c = first; c < end; ++c)
      row[size_t(c)] =
          double(scale) * std::clamp(std::nearbyint(double(float(x[c]) / scale)),
                                     -double(layout.largest()), double(layout.largest()));
  }
  return row;
}

using QuantisedProduct = OnEveryIsa;

void expect_scores(const QuantisedLayout& layout, int64_t rows, int64_t count) {
  const std::vector<real> q = normals(rows * layout.dim, "q"), k = normals(count * layout.dim, "k");
  const int64_t panels = (count + kKeyColumns - 1) / kKeyColumns;
  std::vector<uint8_t> keys(size_t(panels * kKeyColumns * layout.position_bytes()), 0);
  for (int64_t j = 0; j < count; ++j)
    put_quantised_key(layout, k.data() + j * layout.dim, j % kKeyColumns,
                      keys.data() + j / kKeyColumns * kKeyColumns * layout.position_bytes());
  std::vector<real> work(size_t(quantised_query_reals(rows, layout.dim)));
  take_quantised_queries(q.data(), rows, layout.dim, real(0.25), work.data());
  std::vector<real> logits(size_t(rows * kValueRows), std::numeric_limits<real>::quiet_NaN());
  quantised_scores(layout, rows, count, work.data(), keys.data(), logits.data(), kValueRows);
  for (int64_t r = 0; r < rows; ++r) {
    double largest = 0;
    for (int64_t c = 0; c < layout.dim; ++c)
      largest = std::max(largest, std::abs(0.25 * double(q[size_t(r * layout.dim + c)])));
    for (int64_t j = 0; j < count; ++j) {
      const std::vector<double> key = rounded(k.data() + j * layout.dim, layout);
      double sum = 0, size = 0;
      for (int64_t c = 0; c < layout.dim; ++c) {
        sum += 0.25 * double(q[size_t(r * layout.dim + c)]) * key[size_t(c)];
        size += std::abs(key[size_t(c)]);
      }
      ASSERT_LE(std::abs(double(logits[size_t(r * kValueRows + j)]) - sum),
                size * largest * (kQuantisedQueryRounding + 8 * double(kEpsilon)))
          << layout.bits << " bits, " << rows << " rows, key " << j << " of " << count << ", width "
          << layout.dim;
    }
  }
}

TEST_F(QuantisedProduct, ScoresAtEveryBorder) {
  each([] {
    for (const int bits : {8, 4})
      for (const int64_t rows : {1, 2, 3, 4, 5, 9})
        for (const int64_t count : {1, 31, 32, 33, 200, 256})
          for (const int64_t dim : {1, 31, 32, 33, 64, 100})
            expect_scores({dim, bits}, rows, count);
  });
}

// An outlier is a position whose value is 1000 times as large and whose weight is small.
void expect_values(const QuantisedLayout& layout, int64_t rows, int64_t count, int64_t tile_rows,
                   int64_t outlier = -1) {
  std::vector<real> v = normals(count * layout.dim, "v");
  std::vector<real> weights = normals(rows * kValueRows, "w");
  for (real& w : weights) w = std::exp(w);
  if (outlier >= 0) {
    for (int64_t c = 0; c < layout.dim; ++c) v[size_t(outlier * layout.dim + c)] *= 1000;
    for (int64_t r = 0; r < rows; ++r)
      weights[size_t(r * kValueRows + outlier)] *= std::exp(real(-8 - r));
  }
  // What lies behind `count` may be anything: here scales near the largest float.
  std::vector<uint8_t> tile(size_t(tile_rows * layout.position_bytes()), 0x7f);
  for (int64_t j = 0; j < count; ++j)
    put_quantised_value(layout, v.data() + j * layout.dim, j, tile_rows, tile.data());
  std::vector<real> sums(size_t(rows * layout.dim), real(2)), factors(size_t(rows), real(0.5));
  factors[0] = 0;
  std::fill_n(sums.begin(), layout.dim, std::numeric_limits<real>::quiet_NaN());  // is ignored
  add_quantised_values(layout, rows, count, tile_rows, weights.data(), kValueRows, tile.data(),
                       sums.data(), factors.data());
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<double> wanted(size_t(layout.dim), r == 0 ? 0.0 : 1.0);
    double largest = 0;  // of a position's weight times its largest number
    for (int64_t j = 0; j < count; ++j) {
      const double w = double(weights[size_t(r * kValueRows + j)]);
      const std::vector<double> value = rounded(v.data() + j * layout.dim, layout);
      for (int64_t c = 0; c < layout.dim; ++c) {
        wanted[size_t(c)] += w * value[size_t(c)];
        largest = std::max(largest, w * std::abs(value[size_t(c)]));
      }
    }
    // A weight times its scale is off by a share of the largest such product; the largest number of
    // 127 may be rounded to 126.
    const double allowed =
        double(count) * largest * (1.01 * kQuantisedWeightRounding + 8 * double(kEpsilon));
    for (int64_t c = 0; c < layout.dim; ++c)
      ASSERT_LE(std::abs(double(sums[size_t(r * layout.dim + c)]) - wanted[size_t(c)]),
                allowed + 8 * double(kEpsilon))
          << layout.bits << " bits, row " << r << " of " << rows << ", channel " << c << " of "
          << layout.dim << ", " << count << " of " << tile_rows << " positions";
  }
}

TEST_F(QuantisedProduct, ValuesAtEveryBorder) {
  each([] {
    for (const int bits : {8, 4})
      for (const int64_t rows : {1, 2, 3, 4, 5, 9})
        for (const int64_t dim : {1, 31, 32, 33, 64, 100}) {
          for (const int64_t count : {1, 3, 4, 5, 8, 31, 32})
            expect_values({dim, bits}, rows, count, 32);
          for (const int64_t count : {33, 63, 96}) expect_values({dim, bits}, rows, count, 96);
          for (const int64_t count : {97, 255, 256})
            expect_values({dim, bits}, rows, count, kValueRows);
        }
  });
}

// The rounding of a weight is a share of the largest product of one position, not of the largest
// weight times the largest scale.
TEST_F(QuantisedProduct, ALargeValueOfLittleWeightCostsTheOthersNothing) {
  each([] {
    for (const int bits : {8, 4})
      for (const int64_t rows : {1, 4, 9})
        for (const int64_t count : {32, 200, 256})
          for (const int64_t outlier : {int64_t{0}, count - 1})
            expect_values({40, bits}, rows, count, count == 32 ? 32 : kValueRows, outlier);
  });
}

// A written position leaves the others as they are, and can be written again.
TEST_F(QuantisedProduct, APositionIsReplacedAlone) {
  const QuantisedLayout layout{40, 4};
  const std::vector<real> x = normals(2 * layout.dim, "x");
  const auto size = size_t(kKeyColumns * layout.position_bytes());
  for (const bool is_key : {true, false}) {
    const auto put = [&](const real* row, int64_t at, std::vector<uint8_t>& to) {
      is_key ? put_quantised_key(layout, row, at, to.data())
             : put_quantised_value(layout, row, at, kKeyColumns, to.data());
    };
    std::vector<uint8_t> once(size, 0), twice(size, 0);
    for (int64_t at = 0; at < kKeyColumns; ++at) put(x.data(), at, once);
    for (int64_t at = kKeyColumns - 1; at >= 0; --at) {
      put(x.data() + layout.dim, at, twice);
      put(x.data(), at, twice);
    }
    EXPECT_EQ(once, twice) << (is_key ? "keys" : "values");
  }
}

TEST_F(QuantisedProduct, NumbersThatAreNotFiniteMakeTheirBlockNaN) {
  each([] {
    for (const int bits : {8, 4})
      for (const real bad : {std::numeric_limits<real>::quiet_NaN(), -kInfinity}) {
        const QuantisedLayout layout{64, bits};
        std::vector<real> x(64, 1), q(64, 1);
        x[40] = bad;
        std::vector<uint8_t> keys(size_t(kKeyColumns * layout.position_bytes()), 0), tile = keys;
        put_quantised_key(layout, x.data(), 3, keys.data());
        put_quantised_value(layout, x.data(), 3, kKeyColumns, tile.data());
        std::vector<real> work(size_t(quantised_query_reals(1, 64))), logits(kValueRows, 0);
        take_quantised_queries(q.data(), 1, 64, 1, work.data());
        quantised_scores(layout, 1, 5, work.data(), keys.data(), logits.data(), kValueRows);
        for (size_t j = 0; j < 5; ++j) EXPECT_EQ(std::isnan(logits[j]), j == 3) << j;
        std::vector<real> sum(64, 0), one(1, 1);
        std::fill_n(logits.begin(), 5, real(1));
        add_quantised_values(layout, 1, 5, kKeyColumns, logits.data(), kValueRows, tile.data(),
                             sum.data(), one.data());
        for (size_t c = 0; c < 64; ++c) EXPECT_EQ(std::isnan(sum[c]), c >= 32) << c;
      }
  });
}

// Its own row has no meaning then.
TEST_F(QuantisedProduct, AWeightThatIsNotANumberLeavesOtherRowsFinite) {
  each([] {
    for (const int bits : {8, 4}) {
      const QuantisedLayout layout{40, bits};
      const std::vector<real> value = normals(layout.dim, "v");
      std::vector<uint8_t> tile(size_t(kKeyColumns * layout.position_bytes()), 0);
      for (int64_t j = 0; j < kKeyColumns; ++j)
        put_quantised_value(layout, value.data(), j, kKeyColumns, tile.data());
      std::vector<real> weights(2 * kValueRows, real(1)), sum(size_t(2 * layout.dim), 0);
      const std::vector<real> factors(2, 0);
      std::fill_n(weights.begin(), kKeyColumns, std::numeric_limits<real>::quiet_NaN());
      add_quantised_values(layout, 2, kKeyColumns, kKeyColumns, weights.data(), kValueRows,
                           tile.data(), sum.data(), factors.data());
      for (int64_t c = 0; c < layout.dim; ++c)
        EXPECT_TRUE(std::isfinite(sum[size_t(layout.dim + c)])) << bits << " bits, channel " << c;
    }
  });
}

TEST(Quantised, TiesGoToTheEvenInteger) {
  const QuantisedLayout layout{4, 8};
  const std::vector<real> x = {real(127), real(2.5), real(3.5), real(-0.5)};  // the scale is 1
  std::vector<uint8_t> tile(size_t(kKeyColumns * layout.position_bytes()), 0);
  put_quantised_value(layout, x.data(), 0, kKeyColumns, tile.data());
  const int wanted[] = {127, 2, 4, 0};
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(static_cast<int8_t>(tile[4 * c]), wanted[c]) << c;
}

}  // namespace
}  // namespace attn::quantised_product_test
