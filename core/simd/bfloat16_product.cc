// One source, compiled by Highway for each instruction set: a pair is widened to two floats, and
// each half costs an FMA. A tile of sums is kRows × kVectors registers. With AVX512_BF16 the
// products are those of bfloat16_dot.cc. In the double build, and in scalar code, plain loops.
#include "core/simd/bfloat16_product.h"

#include <algorithm>
#include <cstring>

#include "core/base/marks.h"
#include "core/simd/bfloat16_dot.h"
#include "core/simd/fetch.h"
#include "core/simd/isa.h"
#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/bfloat16_product.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// bfloat16_dot.cc is for AVX-512 alone: what is held to AVX2 stays there.
bool takes_dot_of() { return HWY_TARGET == HWY_AVX3 && has_bfloat16_dot(); }

HWY_INLINE real low_half(BFloat16Pair pair) { return to_float({static_cast<uint16_t>(pair)}); }
HWY_INLINE real high_half(BFloat16Pair pair) {
  return to_float({static_cast<uint16_t>(pair >> 16)});
}

BFloat16 rounded_real(real x) { return to_bfloat16(static_cast<float>(x)); }

// The numbers of a row from `j`, an even number, on. The bytes are copied, for `to` may be x.
void round_row_end(const real* x, int64_t j, int64_t depth, BFloat16Pair* to) {
  for (; j < depth; j += 2) {
    const BFloat16Pair pair =
        pair_of(rounded_real(x[j]), j + 1 < depth ? rounded_real(x[j + 1]) : BFloat16());
    std::memcpy(reinterpret_cast<char*>(to) + j / 2 * int64_t{sizeof(pair)}, &pair, sizeof(pair));
  }
}

// Columns one by one, of `b` as in one panel.
void column_by_column(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a,
                      const BFloat16Pair* b, int64_t b_row, PairedEnd end, real* c, int64_t c_row) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) {
      real sum = 0;
      for (int64_t p = 0; p < pairs; ++p) {
        const BFloat16Pair x = a.data[i * a.row + p * a.step], y = b[p * b_row + j];
        sum += low_half(x) * low_half(y) + high_half(x) * high_half(y);
      }
      real& to = c[i * c_row + j];
      const real kept = end.kept(i);
      to = kept == 0 ? end.factor * sum : kept * to + end.factor * sum;
    }
}

#if defined(ATTN_DOUBLE) || HWY_TARGET == HWY_SCALAR

void paired_product_of(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                       PairedEnd end, real* c, int64_t c_row) {
  for (int64_t j = 0; j < cols; j += kPanel)
    column_by_column(rows, std::min(kPanel, cols - j), pairs, a, b.data + j / kPanel * b.panel,
                     b.row, end, c + j, c_row);
}

void round_row_pairs_of(const real* x, int64_t depth, int64_t cols, int64_t stride,
                        BFloat16Pair* to, int64_t to_row) {
  for (int64_t k = 0; k < depth; k += 2, x += 2 * stride, to += to_row)
    for (int64_t j = 0; j < cols; ++j)
      to[j] = pair_of(rounded_real(x[j]), k + 1 < depth ? rounded_real(x[stride + j]) : BFloat16());
}

void round_rows_of(const real* x, int64_t rows, int64_t depth, int64_t stride, BFloat16Pair* to,
                   int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i, x += stride, to += to_row) round_row_end(x, 0, depth, to);
}

// The first column of a panel that is left to pack_pairs_transposed.
int64_t transpose_squares(const BFloat16*, int64_t, int64_t, BFloat16Pair*) { return 0; }

#else

using Tag = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<Tag>;
using Vector = hn::Vec<Tag>;
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int kTileVectors = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 4 : 2;

template <bool kHigh>
HWY_INLINE Vector half_of(hn::Vec<Bits> pairs) {
  const Bits bits;
  if constexpr (kHigh) return hn::BitCast(Tag(), hn::And(pairs, hn::Set(bits, 0xffff0000u)));
  return hn::BitCast(Tag(), hn::ShiftLeft<16>(pairs));
}

// The sums must be locals of the function that loops over the depth, see product.cc. When kFetch,
// as many bytes as the tile reads of b are fetched from `next` on.
template <int kRows, int kVectors, bool kFetch>
HWY_INLINE void paired_tile(int64_t pairs, PairedLeft a, const BFloat16Pair* HWY_RESTRICT b,
                            int64_t b_row, PairedEnd end, real* HWY_RESTRICT c, int64_t c_row,
                            uintptr_t next) {
  const Tag d;
  const Bits bits;
  Vector sums[kRows][kVectors];
  for (int i = 0; i < kRows; ++i)
    for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(d);
  for (int64_t p = 0; p < pairs; ++p) {
    Vector row[kVectors];
    if constexpr (kFetch) {
      constexpr int64_t kBytes = kVectors * kLanes * int64_t{sizeof(BFloat16Pair)};
      fetch<kBytes>(next);
      next += kBytes;
    }
    for (int v = 0; v < kVectors; ++v) row[v] = half_of<false>(hn::LoadU(bits, b + v * kLanes));
    for (int i = 0; i < kRows; ++i) {
      const Vector x = half_of<false>(hn::Set(bits, a.data[i * a.row + p * a.step]));
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(x, row[v], sums[i][v]);
    }
    for (int v = 0; v < kVectors; ++v) row[v] = half_of<true>(hn::LoadU(bits, b + v * kLanes));
    for (int i = 0; i < kRows; ++i) {
      const Vector x = half_of<true>(hn::Set(bits, a.data[i * a.row + p * a.step]));
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(x, row[v], sums[i][v]);
    }
    b += b_row;
  }
  for (int i = 0; i < kRows; ++i) {
    real* const to = c + i * c_row;
    const real kept = end.kept(i);
    for (int v = 0; v < kVectors; ++v) {
      Vector sum = hn::Mul(sums[i][v], hn::Set(d, end.factor));
      if (kept != 0) sum = hn::MulAdd(hn::Set(d, kept), hn::LoadU(d, to + v * kLanes), sum);
      hn::StoreU(sum, d, to + v * kLanes);
    }
  }
}

template <int kVectors, bool kFetch>
HWY_INLINE void paired_rows(int64_t rows, int64_t pairs, PairedLeft a, const BFloat16Pair* b,
                            int64_t b_row, PairedEnd end, real* c, int64_t c_row, uintptr_t next) {
  switch (rows) {
    case 1:
      return paired_tile<1, kVectors, kFetch>(pairs, a, b, b_row, end, c, c_row, next);
    case 2:
      return paired_tile<2, kVectors, kFetch>(pairs, a, b, b_row, end, c, c_row, next);
    case 3:
      return paired_tile<3, kVectors, kFetch>(pairs, a, b, b_row, end, c, c_row, next);
    case 4:
      return paired_tile<4, kVectors, kFetch>(pairs, a, b, b_row, end, c, c_row, next);
    case 5:
      return paired_tile<5, kVectors, kFetch>(pairs, a, b, b_row, end, c, c_row, next);
    default:
      return paired_tile<6, kVectors, kFetch>(pairs, a, b, b_row, end, c, c_row, next);
  }
}

template <int kVectors, bool kFetch = false>
void paired_stripe(int64_t rows, int64_t pairs, PairedLeft a, const BFloat16Pair* b, int64_t b_row,
                   PairedEnd end, real* c, int64_t c_row, uintptr_t next = 0) {
  for (int64_t i = 0; i < rows; i += kTileRows) {
    const int64_t some = std::min(kTileRows, rows - i);
    if (kFetch && i == 0)
      paired_rows<kVectors, kFetch>(some, pairs, a, b, b_row, end, c, c_row, next);
    else
      paired_rows<kVectors, false>(some, pairs, a, b, b_row, end, c, c_row, 0);
    a.data += kTileRows * a.row;
    c += kTileRows * c_row;
    if (end.factors) end.factors += kTileRows;
  }
}

void paired_product_of(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                       PairedEnd end, real* c, int64_t c_row) {
  if (takes_dot_of()) return dot_product(rows, cols, pairs, a, b, end, c, c_row);
  constexpr int64_t kWidth = kTileVectors * kLanes;
  static_assert(kPanel % kWidth == 0);
  int64_t j = 0;
  for (int64_t width; j < cols; j += width) {
    const BFloat16Pair* const from = b.data + j / kPanel * b.panel + j % kPanel;
    width = std::min(kWidth, cols - j);
    if (width == kWidth && b.next) {
      paired_stripe<kTileVectors, true>(
          rows, pairs, a, from, b.row, end, c + j, c_row,
          reinterpret_cast<uintptr_t>(b.next) +
              static_cast<uintptr_t>(j * pairs) * sizeof(BFloat16Pair));
    } else if (width == kWidth) {
      paired_stripe<kTileVectors>(rows, pairs, a, from, b.row, end, c + j, c_row);
    } else if (width >= kLanes) {
      width = kLanes;
      paired_stripe<1>(rows, pairs, a, from, b.row, end, c + j, c_row);
    } else {
      column_by_column(rows, width, pairs, a, from, b.row, end, c + j, c_row);
    }
  }
}

// The rounded numbers in the upper halves.
HWY_INLINE hn::Vec<Bits> rounded_bits(Vector x) {
  const Bits bits;
  const auto raw = hn::BitCast(bits, x);
  const auto last = hn::And(hn::ShiftRight<16>(raw), hn::Set(bits, 1u));
  const auto nearest = hn::Add(raw, hn::Add(last, hn::Set(bits, 0x7fffu)));
  const auto quiet = hn::Or(raw, hn::Set(bits, 0x400000u));
  return hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(x)), quiet, nearest);
}

// Two rows at a time, a pair of them in each word.
void round_row_pairs_of(const real* x, int64_t depth, int64_t cols, int64_t stride,
                        BFloat16Pair* to, int64_t to_row) {
  if (takes_dot_of()) return dot_round_row_pairs(x, depth, cols, stride, to, to_row);
  const Tag d;
  const Bits bits;
  for (int64_t k = 0; k < depth; k += 2, x += 2 * stride, to += to_row) {
    const bool both = k + 1 < depth;
    int64_t j = 0;
    for (; j + kLanes <= cols; j += kLanes) {
      const auto low = rounded_bits(hn::LoadU(d, x + j));
      const auto high = both ? rounded_bits(hn::LoadU(d, x + stride + j)) : hn::Zero(bits);
      hn::StoreU(hn::Or(hn::ShiftRight<16>(low), hn::And(high, hn::Set(bits, 0xffff0000u))), bits,
                 to + j);
    }
    for (; j < cols; ++j)
      to[j] = pair_of(to_bfloat16(x[j]), both ? to_bfloat16(x[stride + j]) : BFloat16());
  }
}

void round_rows_of(const real* x, int64_t rows, int64_t depth, int64_t stride, BFloat16Pair* to,
                   int64_t to_row) {
  if (takes_dot_of()) return dot_round_rows(x, rows, depth, stride, to, to_row);
  const Tag d;
  const Bits bits;
  for (int64_t i = 0; i < rows; ++i, x += stride, to += to_row) {
    int64_t j = 0;
    for (; j + 2 * kLanes <= depth; j += 2 * kLanes) {  // what is written in place was read before
      const Vector first = hn::LoadU(d, x + j), second = hn::LoadU(d, x + j + kLanes);
      const auto low = rounded_bits(hn::ConcatEven(d, second, first));
      const auto high = rounded_bits(hn::ConcatOdd(d, second, first));
      hn::StoreU(hn::Or(hn::ShiftRight<16>(low), hn::And(high, hn::Set(bits, 0xffff0000u))), bits,
                 to + j / 2);
    }
    round_row_end(x, j, depth, to);
  }
}

// Packs squares of 4 rows by 4 pairs of x [rows, 2·pairs]. Returns the number of packed pairs, of
// whole squares; all rows but the last rows % 4 are packed.
int64_t transpose_squares(const BFloat16* x, int64_t rows, int64_t pairs, BFloat16Pair* panel) {
  const hn::Full128<uint32_t> d;
  const hn::Full128<uint64_t> wide;
  const auto load = [&](int64_t j, int64_t p) {
    return hn::LoadU(d, reinterpret_cast<const uint32_t*>(x + 2 * (j * pairs + p)));
  };
  const int64_t whole = pairs / 4 * 4;
  for (int64_t p = 0; p < whole; p += 4)
    for (int64_t j = 0; j + 4 <= rows; j += 4) {
      const auto r0 = load(j, p), r1 = load(j + 1, p), r2 = load(j + 2, p), r3 = load(j + 3, p);
      const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
      BFloat16Pair* const to = panel + p * kPanel + j;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, to + kPanel);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, to + 2 * kPanel);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, to + 3 * kPanel);
    }
  return whole;
}

#endif

void pack_pairs_transposed_to(const BFloat16* x, int64_t rows, int64_t depth,
                              BFloat16Pair* panels) {
  const int64_t pairs = pairs_of(depth);
  for (int64_t first = 0; first < rows; first += kPanel) {
    const BFloat16* const from = x + first * depth;
    BFloat16Pair* const panel = panels + first * pairs;
    const int64_t count = std::min(kPanel, rows - first);
    const int64_t whole = depth % 2 == 0 ? transpose_squares(from, count, pairs, panel) : 0;
    for (int64_t p = 0; p < pairs; ++p) {
      for (int64_t j = p < whole ? count / 4 * 4 : 0; j < count; ++j) {
        const BFloat16* const at = from + j * depth + 2 * p;
        panel[p * kPanel + j] = pair_of(at[0], 2 * p + 1 < depth ? at[1] : BFloat16());
      }
      std::fill(panel + p * kPanel + count, panel + (p + 1) * kPanel, BFloat16Pair{0});
    }
  }
}

void interleave_rows_to(const BFloat16* x, int64_t depth, int64_t cols, BFloat16Pair* to) {
  for (int64_t p = 0; p < depth / 2; ++p) {
    const BFloat16 *const low = x + 2 * p * cols, *const high = low + cols;
    for (int64_t c = 0; c < cols; ++c) to[p * cols + c] = pair_of(low[c], high[c]);
  }
  if (depth % 2 == 0) return;
  const BFloat16* const low = x + (depth - 1) * cols;
  for (int64_t c = 0; c < cols; ++c) to[depth / 2 * cols + c] = pair_of(low[c], BFloat16());
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(paired_product_of);
HWY_EXPORT(round_rows_of);
HWY_EXPORT(round_row_pairs_of);
HWY_EXPORT(pack_pairs_transposed_to);
HWY_EXPORT(interleave_rows_to);
HWY_EXPORT(takes_dot_of);

void paired_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                    real factor, real* c, int64_t c_row) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(paired_product_of)(rows, cols, pairs, a, b, {factor, nullptr}, c, c_row);
}

void add_paired_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                        real* c, int64_t c_row, const real* factors) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(paired_product_of)(rows, cols, pairs, a, b, {1, factors, true}, c, c_row);
}

void ended_paired_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                          PairedEnd end, real* c, int64_t c_row) {
  const KernelMark mark(Part::products);
  HWY_DYNAMIC_DISPATCH(paired_product_of)(rows, cols, pairs, a, b, end, c, c_row);
}

void round_rows(const real* x, int64_t rows, int64_t depth, int64_t stride, BFloat16Pair* to,
                int64_t to_row) {
  const KernelMark mark(Part::packing);
  HWY_DYNAMIC_DISPATCH(round_rows_of)(x, rows, depth, stride, to, to_row);
}

void round_row_pairs(const real* x, int64_t depth, int64_t cols, int64_t stride, BFloat16Pair* to,
                     int64_t to_row) {
  const KernelMark mark(Part::packing);
  HWY_DYNAMIC_DISPATCH(round_row_pairs_of)(x, depth, cols, stride, to, to_row);
}

void pack_pairs(const BFloat16* x, int64_t rows, int64_t depth, BFloat16Pair* to) {
  const KernelMark mark(Part::packing);
  const int64_t pairs = pairs_of(depth);
  for (int64_t i = 0; i < rows; ++i) {
    to[(i + 1) * pairs - 1] = 0;
    std::memcpy(to + i * pairs, x + i * depth, static_cast<size_t>(depth) * sizeof(BFloat16));
  }
}

void pack_pairs_transposed(const BFloat16* x, int64_t rows, int64_t depth, BFloat16Pair* panels) {
  const KernelMark mark(Part::packing);
  HWY_DYNAMIC_DISPATCH(pack_pairs_transposed_to)(x, rows, depth, panels);
}

void interleave_rows(const BFloat16* x, int64_t depth, int64_t cols, BFloat16Pair* to) {
  const KernelMark mark(Part::packing);
  HWY_DYNAMIC_DISPATCH(interleave_rows_to)(x, depth, cols, to);
}

PairedLeft round_to_pairs(int64_t rows, int64_t count, real* x, int64_t stride) {
  const KernelMark mark(Part::elementwise);
  constexpr int64_t kPairsEach = sizeof(real) / sizeof(BFloat16Pair);
  BFloat16Pair* const pairs = reinterpret_cast<BFloat16Pair*>(x);
  HWY_DYNAMIC_DISPATCH(round_rows_of)(x, rows, count, stride, pairs, stride * kPairsEach);
  return {pairs, stride * kPairsEach};
}

std::string bfloat16_isa() { return HWY_DYNAMIC_DISPATCH(takes_dot_of)() ? "avx512_bf16" : isa(); }

}  // namespace attn
#endif
