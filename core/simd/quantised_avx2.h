// The products of quantised_product.h with the integer units of AVX2: vpmaddwd multiplies pairs of
// 16-bit numbers and adds the two products, 16 at a time where an FMA takes 8.
#pragma once

#include "core/simd/quantised_queries.h"

namespace attn {

// Whether this build has the functions below: a build of floats for x86-64.
#if defined(__x86_64__) && !defined(ATTN_DOUBLE)
inline constexpr bool kHasAvx2Words = true;
#else
inline constexpr bool kHasAvx2Words = false;
#endif

// As quantised_scores() and add_quantised_values(). The processor needs AVX2 and FMA.
void avx2_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                 const QuantisedQueries& queries, const uint8_t* panels, real* logits,
                 int64_t stride);
void avx2_add_values(const QuantisedLayout& layout, int64_t rows, int64_t count, int64_t tile_rows,
                     const real* weights, int64_t stride, const uint8_t* tile, real* sum,
                     const real* factors);

}  // namespace attn
