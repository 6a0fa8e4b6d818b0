// Blocks of both operands are rounded and paired into a workspace in the second-level cache, then
// multiplied by bfloat16_product.h; see rounded_product.h.
#include "core/simd/rounded_product.h"

#include <algorithm>
#include <atomic>

#include "core/base/marks.h"
#include "core/base/memory.h"
#include "core/simd/bfloat16_product.h"

namespace attn {
namespace {

// A block of a: 96 KiB as pairs.
constexpr int64_t kRoundedRows = 192, kRoundedDepth = 256;
// Smaller products stay in float32. Counted, not measured: each operand is rounded once a product,
// some three instructions for 16 numbers, and has to be multiplied often enough to pay for that.
constexpr int64_t kFewestRows = 24, kLeastDepth = 16, kFewestCols = 16;

std::atomic<int> scopes = 0;

bool is_rounded(int64_t rows, int64_t cols, int64_t depth, const Left& a) {
  return RoundedProducts::active() && rows >= kFewestRows && cols >= kFewestCols &&
         depth >= kLeastDepth && (a.step == 1 || a.row == 1);
}

// a(i, k) of a block as pairs along k, in `to`.
PairedLeft paired_left(int64_t rows, int64_t depth, Left a, BFloat16Pair* to) {
  if (a.step == 1) {
    round_rows(a.data, rows, depth, a.row, to, pairs_of(depth));
    return {to, pairs_of(depth)};
  }
  round_row_pairs(a.data, depth, rows, a.step, to, rows);
  return {to, 1, rows};
}

void multiply_rounded(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, PairedEnd end,
                      real* c, int64_t c_row) {
  const int64_t most = std::min(depth, kRoundedDepth), tall = std::min(rows, kRoundedRows);
  const int64_t left_reals = padded_reals(reals_of_pairs(tall * pairs_of(most)));
  const Block work(
      static_cast<size_t>(left_reals + reals_of_pairs(kPanel * pairs_of(most))) * sizeof(real),
      Purpose::workspace);
  real* const space = static_cast<real*>(work.data());
  BFloat16Pair* const panel = reinterpret_cast<BFloat16Pair*>(space + left_reals);
  for (int64_t k = 0; k < depth; k += kRoundedDepth) {
    const int64_t d = std::min(kRoundedDepth, depth - k);
    for (int64_t i = 0; i < rows; i += kRoundedRows) {
      const int64_t n = std::min(kRoundedRows, rows - i);
      const PairedLeft left = paired_left(n, d, {a.data + i * a.row + k * a.step, a.row, a.step},
                                          reinterpret_cast<BFloat16Pair*>(space));
      PairedEnd here = k > 0 ? PairedEnd{.add = true} : end;
      if (here.factors) here.factors += i;
      for (int64_t j = 0; j < cols; j += kPanel) {
        const int64_t width = std::min(kPanel, cols - j);
        round_row_pairs(b.data + j / kPanel * b.panel + k * b.row, d, width, b.row, panel, kPanel);
        ended_paired_product(n, width, pairs_of(d), left, {panel, kPanel}, here, c + i * c_row + j,
                             c_row);
      }
    }
  }
}

}  // namespace

RoundedProducts::RoundedProducts() { ++scopes; }
RoundedProducts::~RoundedProducts() { --scopes; }
bool RoundedProducts::active() { return scopes.load(std::memory_order_relaxed) > 0; }

void mixed_product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c,
                   int64_t c_row) {
  if (!is_rounded(rows, cols, depth, a)) return product(rows, cols, depth, a, b, c, c_row);
  multiply_rounded(rows, cols, depth, a, b, {}, c, c_row);
}

void add_mixed_product(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c,
                       int64_t c_row, const real* factors) {
  if (!is_rounded(rows, cols, depth, a))
    return add_product(rows, cols, depth, a, b, c, c_row, factors);
  multiply_rounded(rows, cols, depth, a, b, {.factors = factors, .add = true}, c, c_row);
}

}  // namespace attn
