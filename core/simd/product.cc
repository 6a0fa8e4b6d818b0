// One source, compiled by Highway for each instruction set. A tile of sums is kRows × kVectors
// registers: of six rows 24 of AVX-512's 32, 12 of AVX2's 16; the rest holds a row of b and one
// element of a.
#include "core/simd/product.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/fetch.h"
#include "core/simd/targets.h"
#include "core/simd/tile_shape.h"
#include "core/simd/transpose.h"

#ifndef ATTN_PRODUCT_BEGINNING  // this file is compiled once for each instruction set
#define ATTN_PRODUCT_BEGINNING
namespace attn {
struct Beginning {
  bool add = false;  // to what c holds, times
  const real* factors = nullptr;
  int64_t ahead = 0;  // numbers from c to where they are instead
};
}  // namespace attn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<real>;
using Vector = hn::Vec<Tag>;

constexpr int64_t kLanes = HWY_LANES(real);
constexpr int kTileVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;
static_assert(kPanel % (kTileVectors * kLanes) == 0);
// A tile of one row or of two has more vectors, so that fewer additions wait for the one before. It
// is no wider than a panel.
constexpr int kVectorsOfOne = static_cast<int>(std::min<int64_t>(8, kPanel / kLanes));
constexpr int kVectorsOfTwo = std::min(4, kVectorsOfOne);
static_assert(kPanel % (kVectorsOfOne * kLanes) == 0 && kPanel % (kVectorsOfTwo * kLanes) == 0);
static_assert(kVectorsOfTwo >= kTileVectors);  // the columns that are left begin a tile

// Whether masked loads and stores leave masked elements alone, so that these may lie beyond the end
// of memory or belong to another thread. NEON and Highway's emulation read and write whole vectors.
constexpr bool kMasksAreExact = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

// The first `count` < kLanes elements, zeros behind them, which are not read.
HWY_INLINE Vector load_part(const real* from, int64_t count) {
  const Tag d;
  if constexpr (kMasksAreExact)
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
  HWY_ALIGN real part[kLanes] = {};
  for (int64_t i = 0; i < std::min(count, kLanes); ++i) part[i] = from[i];
  return hn::Load(d, part);
}

// Of x the first `count` < kLanes elements; what lies behind them is not touched.
HWY_INLINE void store_part(Vector x, real* to, int64_t count) {
  const Tag d;
  if constexpr (kMasksAreExact)
    return hn::BlendedStore(x, hn::FirstN(d, static_cast<size_t>(count)), d, to);
  HWY_ALIGN real part[kLanes];
  hn::Store(x, d, part);
  for (int64_t i = 0; i < std::min(count, kLanes); ++i) to[i] = part[i];
}

// c[kRows, width] = a·b (+ c) where width is kVectors whole vectors, but for the last one when
// kPart: then `part` elements. When kFetch, as many bytes as the tile reads of b are fetched from
// `next` on. The sums must be locals of the function that loops over the depth: through references
// they would live in memory.
template <int kRows, int kVectors, bool kPart, bool kFetch>
HWY_INLINE void tile(int64_t depth, Left a, const real* HWY_RESTRICT b, int64_t b_row,
                     real* HWY_RESTRICT c, int64_t c_row, int64_t part, Beginning begin,
                     uintptr_t next) {
  const Tag d;
  Vector sums[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(d);
  const real* HWY_RESTRICT from = a.data;
  for (int64_t k = 0; k < depth; ++k) {
    Vector row[kVectors];
    for (int v = 0; v < kVectors - kPart; ++v) row[v] = hn::LoadU(d, b + v * kLanes);
    if constexpr (kPart) row[kVectors - 1] = load_part(b + (kVectors - 1) * kLanes, part);
    if constexpr (kFetch) {
      constexpr int64_t kBytes = kVectors * kLanes * int64_t{sizeof(real)};
      fetch<kBytes>(next);
      next += kBytes;
    }
    for (int i = 0; i < kRows; ++i) {
      const Vector x = hn::Set(d, from[i * a.row]);
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(x, row[v], sums[i][v]);
    }
    from += a.step;
    b += b_row;
  }
#pragma GCC unroll 6  // left to itself, the compiler keeps this loop where kPart
  for (int i = 0; i < kRows; ++i) {
    real* const to = c + i * c_row;
    const real factor = begin.factors ? begin.factors[i] : real(begin.add);
    const Vector factors = hn::Set(d, factor);
    // Every index of `sums` is a constant once loops are unrolled, else they live in memory.
    for (int v = 0; v < kVectors - kPart; ++v) {
      Vector sum = sums[i][v];
      if (factor != 0) sum = hn::MulAdd(factors, hn::LoadU(d, to + begin.ahead + v * kLanes), sum);
      hn::StoreU(sum, d, to + v * kLanes);
    }
    if constexpr (kPart) {
      constexpr int kLast = kVectors - 1;
      Vector sum = sums[i][kLast];
      if (factor != 0)
        sum = hn::MulAdd(factors, load_part(to + begin.ahead + kLast * kLanes, part), sum);
      store_part(sum, to + kLast * kLanes, part);
    }
  }
}

template <int kVectors, bool kPart, bool kFetch = false>
HWY_INLINE void tile_rows(int64_t rows, int64_t depth, Left a, const real* b, int64_t b_row,
                          real* c, int64_t c_row, int64_t part, Beginning begin,
                          uintptr_t next = 0) {
  switch (rows) {
    case 1:
      return tile<1, kVectors, kPart, kFetch>(depth, a, b, b_row, c, c_row, part, begin, next);
    case 2:
      return tile<2, kVectors, kPart, kFetch>(depth, a, b, b_row, c, c_row, part, begin, next);
    case 3:
      return tile<3, kVectors, kPart, kFetch>(depth, a, b, b_row, c, c_row, part, begin, next);
    case 4:
      return tile<4, kVectors, kPart, kFetch>(depth, a, b, b_row, c, c_row, part, begin, next);
    case 5:
      return tile<5, kVectors, kPart, kFetch>(depth, a, b, b_row, c, c_row, part, begin, next);
    default:
      return tile<6, kVectors, kPart, kFetch>(depth, a, b, b_row, c, c_row, part, begin, next);
  }
}

// All rows of up to kTileVectors·kLanes columns; when kFetch, the first tile fetches.
template <int kVectors, bool kPart, bool kFetch = false>
void stripe(int64_t rows, int64_t depth, Left a, const real* b, int64_t b_row, real* c,
            int64_t c_row, int64_t part, Beginning begin, uintptr_t next = 0) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t some = std::min(kTileRows, rows - i);
    if (kFetch && i == 0)
      tile_rows<kVectors, kPart, kFetch>(some, depth, a, b, b_row, c, c_row, part, begin, next);
    else
      tile_rows<kVectors, kPart>(some, depth, a, b, b_row, c, c_row, part, begin);
    a.data += kTileRows * a.row;
    c += kTileRows * c_row;
    if (begin.factors) begin.factors += kTileRows;
  }
}

void narrow_stripe(int64_t rows, int64_t cols, int64_t depth, Left a, const real* b, int64_t b_row,
                   real* c, int64_t c_row, Beginning begin) {
  const int64_t whole = cols / kLanes, part = cols % kLanes;
  switch (whole + (part > 0)) {
    case 1:
      return part ? stripe<1, true>(rows, depth, a, b, b_row, c, c_row, part, begin)
                  : stripe<1, false>(rows, depth, a, b, b_row, c, c_row, part, begin);
    case 2:
      return part ? stripe<2, true>(rows, depth, a, b, b_row, c, c_row, part, begin)
                  : stripe<2, false>(rows, depth, a, b, b_row, c, c_row, part, begin);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
    case 3:
      return part ? stripe<3, true>(rows, depth, a, b, b_row, c, c_row, part, begin)
                  : stripe<3, false>(rows, depth, a, b, b_row, c, c_row, part, begin);
    case 4:
      return part ? stripe<4, true>(rows, depth, a, b, b_row, c, c_row, part, begin)
                  : stripe<4, false>(rows, depth, a, b, b_row, c, c_row, part, begin);
#endif
  }
}

// Where column j of b begins, and what its tile fetches.
HWY_INLINE const real* column(Right b, int64_t j) {
  return b.data + j / kPanel * b.panel + j % kPanel;
}
HWY_INLINE uintptr_t next_of(Right b, int64_t j, int64_t depth) {
  return reinterpret_cast<uintptr_t>(b.next) + static_cast<uintptr_t>(j * depth) * sizeof(real);
}

// Multiplies whole tiles of columns from j on; returns the column behind them.
template <int kRows, int kVectors>
int64_t few_rows(int64_t j, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row,
                 Beginning begin) {
  constexpr int64_t kWidth = kVectors * kLanes;
  for (; j + kWidth <= cols; j += kWidth) {
    const real* const from = column(b, j);
    if (b.next)
      tile<kRows, kVectors, false, true>(depth, a, from, b.row, c + j, c_row, 0, begin,
                                         next_of(b, j, depth));
    else
      tile<kRows, kVectors, false, false>(depth, a, from, b.row, c + j, c_row, 0, begin, 0);
  }
  return j;
}

void product_of(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row,
                Beginning begin) {
  constexpr int64_t kWidth = kTileVectors * kLanes;
  int64_t j = 0;
  if (rows == 1) {
    j = few_rows<1, kVectorsOfOne>(j, cols, depth, a, b, c, c_row, begin);
    j = few_rows<1, kVectorsOfTwo>(j, cols, depth, a, b, c, c_row, begin);
  }
  if (rows == 2) j = few_rows<2, kVectorsOfTwo>(j, cols, depth, a, b, c, c_row, begin);
  for (; j < cols; j += kWidth) {
    const real* const from = column(b, j);
    if (b.next && j + kWidth <= cols)
      stripe<kTileVectors, false, true>(rows, depth, a, from, b.row, c + j, c_row, 0, begin,
                                        next_of(b, j, depth));
    else
      narrow_stripe(rows, std::min(kWidth, cols - j), depth, a, from, b.row, c + j, c_row, begin);
  }
}

TileShape tile_shape_of() { return {kTileRows, kTileVectors, kLanes}; }

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(product_of);
HWY_EXPORT(tile_shape_of);

void product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(product_of)(rows, cols, depth, a, b, c, c_row, {});
}

void add_product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t c_row,
                 const real* factors) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(product_of)(rows, cols, depth, a, b, c, c_row, {true, factors});
}

void add_product_to(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, const real* from,
                    real* c, int64_t c_row, const real* factors) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(product_of)(rows, cols, depth, a, b, c, c_row, {true, factors, from - c});
}

TileShape tile_shape() { return HWY_DYNAMIC_DISPATCH(tile_shape_of)(); }

void pack_transposed(const real* x, int64_t rows, int64_t depth, int64_t x_row, real* panels) {
  const KernelMark mark(Part::packing);
  for (int64_t j = 0; j < rows; j += kPanel) {
    const int64_t cols = std::min(kPanel, rows - j);
    real* const panel = panels + j * depth;
    transpose(cols, depth, x + j * x_row, x_row, panel, kPanel);
    for (int64_t k = 0; k < depth && cols < kPanel; ++k)
      std::fill(panel + k * kPanel + cols, panel + (k + 1) * kPanel, real(0));
  }
}

}  // namespace attn
#endif
