// Products of queries and of weights in `real` with keys and values of 8 or 4 bits
// (quantised_layout.h). With AVX512_VNNI or AVX2 they are products of integers: queries and weights
// are rounded to 16 bits first, weights with AVX2 to 15. Other instruction sets widen the numbers
// in a tile that stays in L1. 2·rows·positions·dim FLOPs.
#pragma once

#include <cstdint>
#include <string>

#include "core/simd/quantised_layout.h"

namespace attn {

// Rounding of a query to 16 bits is at most this share of its largest number; of a weight times a
// scale, of the largest such product of its kValueRows positions in a block of channels (with
// AVX512_VNNI of half of it).
inline constexpr double kQuantisedQueryRounding = 0.5 / (127 * 256);
inline constexpr double kQuantisedWeightRounding = 0.5 / 32767;

// The workspace of `rows` queries, and queries x [rows, dim] put there: factor·x.
int64_t quantised_query_reals(int64_t rows, int64_t dim);
void take_quantised_queries(const real* x, int64_t rows, int64_t dim, real factor, real* to);

// logits(i, j) = query i · key j for `count` keys, at most kValueRows, from the first of a panel
// on. Rows of logits are `stride` apart; up to the end of the last panel any number is written.
void quantised_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                      const real* queries, const uint8_t* panels, real* logits, int64_t stride);

// sum(i, c) = factors[i]·sum(i, c) + Σ_j weights(i, j)·value(j, c) for the first `count` positions
// of a tile of `tile_rows`; where a factor is 0, the old sum is ignored. Weights are not negative.
// Rows of weights are `stride` apart, those of sum `layout.dim`.
void add_quantised_values(const QuantisedLayout& layout, int64_t rows, int64_t count,
                          int64_t tile_rows, const real* weights, int64_t stride,
                          const uint8_t* tile, real* sum, const real* factors);

// The instruction set of these products: "avx512_vnni", or isa().
std::string quantised_isa();

}  // namespace attn
