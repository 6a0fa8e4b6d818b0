// The pieces of a gated attention unit: what it reads of a row, and its decoder. Hua et al. 2022,
// arXiv:2202.10447, section 3.1.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/var.h"
#include "variants/api/decoder.h"

namespace attn {

struct GatedUnitWeights {
  Var gate, value, base;         // [width, units], [width, units], [width, base]
  Var query_scale, query_shift;  // [base]
  Var key_scale, key_shift;      // [base]
  Var out;                       // [units, width]
};

struct GatedUnitRows {
  Var gate, q, k, v;  // [batch, len, units] and [batch, 1, len, base or units]
};
// Rows of x [batch, len, width].
GatedUnitRows gated_unit_rows(const Var& x, const GatedUnitWeights& weights);

// The state is keys and values of all positions, base + units numbers each.
std::unique_ptr<Decoder> gated_unit_decoder(const Shape& position, int64_t capacity,
                                            const GatedUnitWeights& weights);

}  // namespace attn
