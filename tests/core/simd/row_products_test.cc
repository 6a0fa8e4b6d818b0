// Products between rows, of every number of rows around the blocks of registers and every end of a
// row, on every instruction set of this machine, against sums in double.
#include "core/simd/row_products.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/simd/on_every_isa.h"

namespace attn::row_products_test {
namespace {

using RowProducts = OnEveryIsa;

std::vector<real> numbers(int64_t count, int64_t step) {
  std::vector<real> made(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    made[static_cast<size_t>(i)] = static_cast<real>(i * step % 31 - 15) / 8;
  return made;
}

TEST_F(RowProducts, EveryBorder) {
  constexpr int64_t kBeside = 3;  // numbers between two rows
  each([&] {
    for (const int64_t x_rows : {1, 3, 4, 5, 8})
      for (const int64_t y_rows : {1, 2, 3, 4, 7, 8})
        for (const int64_t n : {0, 1, 7, 15, 16, 17, 100}) {
          const int64_t row = n + kBeside;
          const std::vector<real> x = numbers(x_rows * row, 7), y = numbers(y_rows * row, 11);
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

}  // namespace
}  // namespace attn::row_products_test
