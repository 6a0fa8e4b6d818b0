// The packed product and the products of single rows, on every instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd/product.h"
#include "core/simd/row_products.h"
#include "core/simd/tile_shape.h"
#include "core/simd/transpose.h"
#include "tests/core/simd/on_every_isa.h"

namespace attn::product_test {
namespace {

// The register-tiled product at every border of its tiles, on every instruction set of this
// machine, against sums in double precision.

struct Case {
  int64_t rows, cols, depth;
  bool transposed_left, packed_right, factors;
};

// Every operand is a view into the middle of a larger buffer, one element off any alignment; what
// surrounds c must survive.
void expect_product(const Case& t) {
  constexpr real kGuard = real(-77);
  const int64_t a_row = t.transposed_left ? 1 : t.depth + 2,
                a_step = t.transposed_left ? t.rows + 3 : 1;
  const int64_t b_row = t.cols + 1, c_row = t.cols + 5;
  const std::vector<real> a = normals((t.rows + 3) * (t.depth + 3), "a");
  const std::vector<real> b = normals((t.cols + 2) * (t.depth + 2), "b");
  const std::vector<real> factors = normals(t.rows, "factors");
  std::vector<real> c(static_cast<size_t>(t.rows * c_row + 2), kGuard);
  const std::vector<real> start = normals(t.rows * c_row + 2, "c");
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < t.cols; ++j)
      c[static_cast<size_t>(1 + i * c_row + j)] = start[static_cast<size_t>(i * c_row + j)];
  std::vector<real> panels(static_cast<size_t>(packed_reals(t.cols, t.depth)), kGuard);
  if (t.packed_right) pack_transposed(b.data() + 1, t.cols, t.depth, t.depth, panels.data());
  const Right right = t.packed_right ? packed(panels.data(), t.depth) : Right{b.data() + 1, b_row};
  const std::vector<real> before = c;
  add_product(t.rows, t.cols, t.depth, {a.data() + 1, a_row, a_step}, right, c.data() + 1, c_row,
              t.factors ? factors.data() : nullptr);
  for (int64_t i = 0; i < t.rows; ++i)
    for (int64_t j = 0; j < c_row; ++j) {
      const auto at = static_cast<size_t>(1 + i * c_row + j);
      if (j >= t.cols) {
        ASSERT_EQ(c[at], i * c_row + j < t.rows * c_row ? before[at] : kGuard);
        continue;
      }
      double want =
          (t.factors ? double(factors[static_cast<size_t>(i)]) : 1.0) * double(before[at]);
      double size = std::abs(want);
      for (int64_t k = 0; k < t.depth; ++k) {
        const double term =
            double(a[static_cast<size_t>(1 + i * a_row + k * a_step)]) *
            double(
                b[static_cast<size_t>(t.packed_right ? 1 + j * t.depth + k : 1 + k * b_row + j)]);
        want += term;
        size += std::abs(term);
      }
      // A sum of n terms in any order is off by n/2 roundings of its size at most; here far fewer.
      ASSERT_LE(std::abs(double(c[at]) - want), 8 * double(kEpsilon) * size)
          << t.rows << "x" << t.cols << "x" << t.depth << " at " << i << ", " << j;
    }
}

using Product = OnEveryIsa;

TEST_F(Product, EveryBorder) {
  each([] {
    for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 12, 13})
      for (const int64_t cols : {1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129})
        for (const int64_t depth : {0, 1, 5, 64, 65})
          for (const int kind : {0, 1, 2, 3, 4, 7})
            expect_product({rows, cols, depth, (kind & 1) > 0, (kind & 2) > 0, (kind & 4) > 0});
  });
}

TEST_F(Product, OverwritesAndSkipsWhatHasFactorZero) {
  each([] {
    for (const int64_t rows : {1, 2, 7})
      for (const int64_t cols : {20, 64, 97}) {
        const auto size = static_cast<size_t>(rows * cols);
        const std::vector<real> a = normals(rows * 3, "a"), b = normals(3 * cols, "b");
        std::vector<real> c(size, std::numeric_limits<real>::quiet_NaN()), sum = c;
        product(rows, cols, 3, {a.data(), 3, 1}, {b.data(), cols}, c.data(), cols);
        const std::vector<real> zeros(static_cast<size_t>(rows), real(0));
        add_product(rows, cols, 3, {a.data(), 3, 1}, {b.data(), cols}, sum.data(), cols,
                    zeros.data());
        for (size_t i = 0; i < size; ++i) {
          ASSERT_TRUE(std::isfinite(c[i]));
          ASSERT_EQ(c[i], sum[i]);
        }
      }
  });
}

// From another place, or from c itself: the same bits.
TEST_F(Product, AddsToWhatLiesElsewhere) {
  each([] {
    for (const int64_t rows : {1, 2, 6, 13})
      for (const int64_t cols : {1, 16, 64, 65, 130}) {
        const int64_t depth = 7, c_row = cols + 2;
        const std::vector<real> a = normals(rows * depth, "a"), b = normals(depth * cols, "b");
        const std::vector<real> factors = normals(rows, "factors");
        const std::vector<real> from = normals(rows * c_row, "c");
        std::vector<real> want = from, here = from, there(from.size(), real(-77));
        add_product(rows, cols, depth, {a.data(), depth}, {b.data(), cols}, want.data(), c_row,
                    factors.data());
        add_product_to(rows, cols, depth, {a.data(), depth}, {b.data(), cols}, here.data(),
                       here.data(), c_row, factors.data());
        EXPECT_EQ(here, want);
        add_product_to(rows, cols, depth, {a.data(), depth}, {b.data(), cols}, from.data(),
                       there.data(), c_row, factors.data());
        for (size_t i = 0; i < there.size(); ++i)
          ASSERT_EQ(there[i], static_cast<int64_t>(i) % c_row < cols ? want[i] : real(-77));
      }
  });
}

// The bits do not depend on it, and what is fetched is not read: it may be nobody's memory.
TEST_F(Product, WhatIsFetchedMeanwhileChangesNothing) {
  each([] {
    for (const int64_t rows : {1, 2, 4, 6, 7, 13})
      for (const int64_t cols : {1, 16, 63, 64, 65, 256}) {
        const int64_t depth = 33;
        const std::vector<real> a = normals(rows * depth, "a");
        const std::vector<real> b = normals(packed_reals(cols, depth), "b");
        const std::vector<real> factors = normals(rows, "factors");
        const std::vector<real> start = normals(rows * cols, "c");
        std::vector<real> plain = start;
        Right right = packed(b.data(), depth);
        add_product(rows, cols, depth, {a.data(), depth}, right, plain.data(), cols,
                    factors.data());
        for (const void* next : {static_cast<const void*>(b.data() + 7),
                                 reinterpret_cast<const void*>(uintptr_t{4096})}) {
          right.next = next;
          std::vector<real> found = start;
          add_product(rows, cols, depth, {a.data(), depth}, right, found.data(), cols,
                      factors.data());
          ASSERT_EQ(plain, found) << rows << "x" << cols;
        }
      }
  });
}

TEST_F(Product, PackingTransposesAndFillsUpWithZeros) {
  each([] {
    for (const int64_t rows : {1, 3, 63, 64, 65, 130})
      for (const int64_t depth : {1, 2, 3, 4, 5, 16, 17}) {
        const std::vector<real> x = normals(rows * (depth + 1) + 1, "x");
        std::vector<real> panels(static_cast<size_t>(packed_reals(rows, depth)), real(7));
        pack_transposed(x.data() + 1, rows, depth, depth + 1, panels.data());
        for (int64_t j = 0; j < (rows + kPanel - 1) / kPanel * kPanel; ++j)
          for (int64_t k = 0; k < depth; ++k)
            ASSERT_EQ(panels[static_cast<size_t>((j / kPanel * depth + k) * kPanel + j % kPanel)],
                      j < rows ? x[static_cast<size_t>(1 + j * (depth + 1) + k)] : real(0));
      }
  });
}

// More registers than there are would spill the sums to memory.
TEST_F(Product, TheTileFitsTheRegistersAndThePanel) {
  each([] {
    const TileShape tile = tile_shape();
    EXPECT_EQ(tile.rows, kTileRows);
    EXPECT_GE(tile.vectors, 1);
    EXPECT_EQ(kPanel % (tile.vectors * tile.lanes), 0);
    const auto bytes = tile.lanes * static_cast<int64_t>(sizeof(real));
    const int64_t registers = isa() == "avx2" ? 16 : 32;
    EXPECT_LT(tile.rows * tile.vectors + tile.vectors, registers);
    if (isa() == "avx512") {
      EXPECT_EQ(bytes, 64);
    } else if (isa() == "avx2") {
      EXPECT_EQ(bytes, 32);
    }
  });
}

TEST_F(Product, InstructionSetsAgree) {
  const std::vector<real> a = normals(13 * 70, "a"), b = normals(70 * 90, "b");
  std::vector<std::vector<real>> results;
  each([&] {
    results.emplace_back(13 * 90);
    product(13, 90, 70, {a.data(), 70, 1}, {b.data(), 90}, results.back().data(), 90);
  });
  for (const std::vector<real>& other : results)
    for (size_t i = 0; i < other.size(); ++i)
      ASSERT_NEAR(other[i], results.front()[i], 300 * kEpsilon);
}

// Products between rows, of every number of rows around the blocks of registers and every end of a
// row, on every instruction set of this machine, against sums in double.

using RowProducts = OnEveryIsa;

std::vector<real> eighths(int64_t count, int64_t step) {
  std::vector<real> made(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    made[static_cast<size_t>(i)] = static_cast<real>(i * step % 31 - 15) / 8;
  return made;
}

TEST_F(RowProducts, EveryBorder) {
  constexpr int64_t kBeside = 3;  // eighths between two rows
  each([&] {
    for (const int64_t x_rows : {1, 3, 4, 5, 8})
      for (const int64_t y_rows : {1, 2, 3, 4, 7, 8})
        for (const int64_t n : {0, 1, 7, 15, 16, 17, 100}) {
          const int64_t row = n + kBeside;
          const std::vector<real> x = eighths(x_rows * row, 7), y = eighths(y_rows * row, 11);
          std::vector<real> to(static_cast<size_t>(x_rows * y_rows + 1), real(-1));
          row_products(x_rows, y_rows, n, x.data(), row, y.data(), row, to.data());
          EXPECT_EQ(to.back(), real(-1));
          for (int64_t i = 0; i < x_rows; ++i)
            for (int64_t j = 0; j < y_rows; ++j) {
              double sum = 0;  // of multiples of 1/64: exact
              for (int64_t c = 0; c < n; ++c)
                sum += static_cast<double>(x[static_cast<size_t>(i * row + c)]) *
                       static_cast<double>(y[static_cast<size_t>(j * row + c)]);
              ASSERT_EQ(static_cast<double>(to[static_cast<size_t>(i * y_rows + j)]), sum)
                  << x_rows << " x " << y_rows << " rows of " << n << " at " << i << ", " << j;
            }
        }
  });
}

// Transposes of every shape around the squares of registers, on every instruction set of this
// machine: each number is where it belongs, and what lies beside the result is left alone.

using Transpose = OnEveryIsa;

TEST_F(Transpose, EveryBorder) {
  constexpr int64_t kBeside = 3;  // numbers between two rows
  const int64_t sides[] = {0, 1, 2, 3, 4, 5, 7, 15, 16, 17, 20, 33, 64, 65};
  each([&] {
    for (const int64_t rows : sides)
      for (const int64_t cols : sides) {
        const int64_t x_row = cols + kBeside, to_row = rows + kBeside;
        std::vector<real> x(static_cast<size_t>(rows * x_row + 1));
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<real>(i + 1);
        std::vector<real> to(static_cast<size_t>(cols * to_row + 1), real(-1));
        transpose(rows, cols, x.data() + 1, x_row, to.data() + 1, to_row);
        EXPECT_EQ(to[0], real(-1));
        for (int64_t j = 0; j < cols; ++j)
          for (int64_t i = 0; i < to_row; ++i)
            ASSERT_EQ(to[static_cast<size_t>(1 + j * to_row + i)],
                      i < rows ? x[static_cast<size_t>(1 + i * x_row + j)] : real(-1))
                << rows << " x " << cols << " at " << i << ", " << j;
      }
  });
}

}  // namespace
}  // namespace attn::product_test
