// The products of bfloat16_product.h by the instruction vdpbf16ps of AVX512_BF16: 32 multiply-adds
// an instruction, twice those of an FMA in float. Internal to bfloat16_product.cc.
#pragma once

#include "core/simd/bfloat16_product.h"

namespace attn {

// Whether this program has the instruction and the processor too. False in the double build.
bool has_bfloat16_dot();
// As paired_product() and add_paired_product(). Only where has_bfloat16_dot().
void dot_product(int64_t rows, int64_t cols, int64_t pairs, PairedLeft a, PairedRight b,
                 PairedEnd end, real* c, int64_t c_row);
// As round_rows() and round_row_pairs(). Only where has_bfloat16_dot().
void dot_round_rows(const real* x, int64_t rows, int64_t depth, int64_t stride, BFloat16Pair* to,
                    int64_t to_row);
void dot_round_row_pairs(const real* x, int64_t depth, int64_t cols, int64_t stride,
                         BFloat16Pair* to, int64_t to_row);

}  // namespace attn
