// Transposes of every shape around the squares of registers, on every instruction set of this
// machine: each number is where it belongs, and what lies beside the result is left alone.
#include "core/simd/transpose.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/core/simd/on_every_isa.h"

namespace attn::transpose_test {
namespace {

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
}  // namespace attn::transpose_test
