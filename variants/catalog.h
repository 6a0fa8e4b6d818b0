// The catalogue of all variants, in the order of plots and colours.
#pragma once

#include <string_view>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

const std::vector<VariantInfo>& all_variants();
// The variant of that name; if there is none, an Error that suggests the nearest name.
const VariantInfo& find_variant(std::string_view name);
// Exact softmax attention: the reference of fidelity and of speed comparisons, and the attention of
// a model's layers that a variant cannot serve.
const VariantInfo& exact_reference();

}  // namespace attn
