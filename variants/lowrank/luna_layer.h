// The paper's layer of luna, which hands its packed rows on: a mixer with its own projections. Ma
// et al. 2021, arXiv:2106.01540, section 3. For n rows and m packed ones, 4·n·m·width FLOPs each
// way and 2·width² a projected row.
#pragma once

#include "variants/api/variant_info.h"

namespace attn {

VariantInfo layer_of_luna();

}  // namespace attn
