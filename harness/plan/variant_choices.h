// The variants that specs stand for; see grammar.h.
#pragma once

#include <utility>
#include <vector>

#include "harness/cell/key.h"
#include "harness/plan/grammar.h"
#include "variants/api/variant_info.h"

namespace attn {

// With complete parameters.
using VariantChoices = std::vector<std::pair<const VariantInfo*, Params>>;

// Every combination of the values of each spec, and of a stack those of its layers. Error for an
// unknown name or value.
VariantChoices resolve_variants(const std::vector<Spec>& specs);
// As the key of a cell holds it.
Plugin key_of_variant(const VariantInfo& info, const Params& params);

}  // namespace attn
