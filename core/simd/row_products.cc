// One source, compiled by Highway for each instruction set; see row_products.h.
#include "core/simd/row_products.h"

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/row_products.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// Sums of a block: as many as registers hold.
constexpr int kSumsX = 4, kSumsY = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;

template <int kX, int kY>
HWY_INLINE void block(int64_t n, const real* x, int64_t x_row, const real* y, int64_t y_row,
                      real* to, int64_t to_row) {
  Vector sums[kX][kY];
  for (int i = 0; i < kX; ++i)
    for (int j = 0; j < kY; ++j) sums[i][j] = hn::Zero(Tag());
  over_row(n, [&](int64_t c, auto part) HWY_ATTR {
    Vector right[kY];
    for (int j = 0; j < kY; ++j) right[j] = part.load(y + j * y_row + c);
    for (int i = 0; i < kX; ++i) {
      const Vector left = part.load(x + i * x_row + c);
      for (int j = 0; j < kY; ++j) sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
    }
  });
  for (int i = 0; i < kX; ++i)
    for (int j = 0; j < kY; ++j)
      to[i * to_row + j] = hn::GetLane(hn::SumOfLanes(Tag(), sums[i][j]));
}

template <int kX>
HWY_INLINE void blocks(int64_t y_rows, int64_t n, const real* x, int64_t x_row, const real* y,
                       int64_t y_row, real* to) {
  int64_t j = 0;
  for (; j + kSumsY <= y_rows; j += kSumsY)
    block<kX, kSumsY>(n, x, x_row, y + j * y_row, y_row, to + j, y_rows);
  for (; j < y_rows; ++j) block<kX, 1>(n, x, x_row, y + j * y_row, y_row, to + j, y_rows);
}

void row_products_of(int64_t x_rows, int64_t y_rows, int64_t n, const real* x, int64_t x_row,
                     const real* y, int64_t y_row, real* to) {
  int64_t i = 0;
  for (; i + kSumsX <= x_rows; i += kSumsX)
    blocks<kSumsX>(y_rows, n, x + i * x_row, x_row, y, y_row, to + i * y_rows);
  for (; i < x_rows; ++i) blocks<1>(y_rows, n, x + i * x_row, x_row, y, y_row, to + i * y_rows);
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(row_products_of);

void row_products(int64_t x_rows, int64_t y_rows, int64_t n, const real* x, int64_t x_row,
                  const real* y, int64_t y_row, real* to) {
  HWY_DYNAMIC_DISPATCH(row_products_of)(x_rows, y_rows, n, x, x_row, y, y_row, to);
}

}  // namespace attn
#endif
