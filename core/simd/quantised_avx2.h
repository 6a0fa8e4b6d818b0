// The products of quantised_product.h with the integer units of AVX2: vpmaddwd multiplies pairs of
// 16-bit numbers and adds the two products, 16 at a time where an FMA takes 8.
#pragma once

#include "core/simd/quantised_queries.h"

namespace attn {

bool has_avx2_words();  // false in the double build too

// As quantised_scores() and add_quantised_values(). Only where has_avx2_words().
void avx2_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                 const QuantisedQueries& queries, const uint8_t* panels, real* logits,
                 int64_t stride);
void avx2_add_values(const QuantisedLayout& layout, int64_t rows, int64_t count, int64_t tile_rows,
                     const real* weights, int64_t stride, const uint8_t* tile, real* sum,
                     const real* factors);

}  // namespace attn
