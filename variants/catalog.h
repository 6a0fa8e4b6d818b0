// Every variant of the suite, in the order in which they are listed, plotted and coloured.
#pragma once

#include <string_view>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

const std::vector<VariantInfo>& all_variants();
const VariantInfo& find_variant(
    std::string_view name);  // Error naming the nearest one when unknown

}  // namespace attn
