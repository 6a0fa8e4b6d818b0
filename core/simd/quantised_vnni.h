// The products of quantised_product.h by the instruction vpdpbusd of AVX512_VNNI: 64 products of
// bytes an instruction, added up in integers. Internal to quantised_product.cc.
#pragma once

#include "core/simd/quantised_queries.h"

namespace attn {

// Whether this program has the instruction and the processor too. False in the double build.
bool has_vnni();
// As quantised_scores() and add_quantised_values(). Only where has_vnni().
void vnni_scores(const QuantisedLayout& layout, int64_t rows, int64_t count,
                 const QuantisedQueries& queries, const uint8_t* panels, real* logits,
                 int64_t stride);
void vnni_add_values(const QuantisedLayout& layout, int64_t rows, int64_t count, int64_t tile_rows,
                     const real* weights, int64_t stride, const uint8_t* tile, real* sum,
                     const real* factors);

}  // namespace attn
