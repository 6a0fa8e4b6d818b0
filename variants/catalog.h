// Every variant of the suite, in the order in which they are plotted and coloured.
#pragma once

#include <string_view>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

const std::vector<VariantInfo>& all_variants();
const VariantInfo& find_variant(
    std::string_view name);  // Error naming the nearest one when unknown
// Exact softmax attention: what fidelity, crossings and closing lines compare with, and what stands
// in a model where a variant cannot.
const VariantInfo& exact_reference();

}  // namespace attn
