// Stacks: models whose layers are of several variants, such as full+2·linear: a layer of exact
// attention, then two of linear attention, repeated through the model. Lieber et al. 2024,
// arXiv:2403.19887; Arora et al. 2024, arXiv:2402.18668. Costs what its layers cost.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "variants/api/variant_info.h"

namespace attn {

// A layer of the variant with these parameters, which are checked.
LayerVariant layer_of(const VariantInfo& info, const std::map<std::string, ParamValue>& params);

// A stack's entry beside those of the catalogue. Its traits are those of all of its layers: it can
// be causal where each layer can. It is a stack of at least two layers that are not all equal, and
// no shorter one repeated; see one_period(). It cannot be built: a model builds its layers.
VariantInfo stack_of(std::vector<LayerVariant> layers);

// "full+2·truncated[window=32]": parameters that are not the default, and how often a layer follows
// itself. catalog.h finds a stack by this text, and stack_text.h divides it.
std::string stack_name(const std::vector<LayerVariant>& layers);

// The shortest list of which `layers` is a repetition.
std::vector<LayerVariant> one_period(std::vector<LayerVariant> layers);

// What layer `index` of a model is of: of a stack, the layer of the period; else `info` with
// `params`.
LayerVariant layer_variant(const VariantInfo& info, const std::map<std::string, ParamValue>& params,
                           int64_t index);

// Whether an earlier layer of the model hands something on to layer `index`: one of the same
// variant with the same parameters, where that carries (carrying.h).
bool receives_at(const VariantInfo& info, const std::map<std::string, ParamValue>& params,
                 int64_t index);

// The reason why a model of so many layers cannot repeat the stack; nullopt: it can, or `info` is
// no stack.
std::optional<std::string> why_no_repetition(const VariantInfo& info, int64_t layers);

}  // namespace attn
