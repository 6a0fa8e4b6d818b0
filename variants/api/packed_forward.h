// The forward of sequences that are packed without padding (packing.h), of every attention.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "variants/api/packing.h"
#include "variants/api/variant_info.h"

namespace attn {

// The answer of q, k, v and gates [batch, heads, len, width], where heads of queries may share
// those of keys and values, or of a mixer's rows [batch, len, width].
Var forward_of(const Attention& attention, std::span<const Var> inputs, const Mask& mask);

// Each sequence is answered by itself: states begin anew at each border, and no position reads one
// of another sequence. `inputs` are q, k, v and the gates, or of a mixer the rows x [positions,
// width] alone. k and v may have fewer heads, each shared by as many query heads. The answer is
// packed as q or x is.
Var packed_forward(const Attention& attention, std::span<const Var> inputs, const Packing& packing);

// Why sequences of these lengths cannot be packed, of heads and causality as `shape` has them:
// those of a stack, and of lengths that the variant cannot run; nullopt: they can.
std::optional<std::string> why_not_packed(const VariantInfo& variant, AttentionShape shape,
                                          const Params& params,
                                          const std::vector<int64_t>& lengths);

}  // namespace attn
