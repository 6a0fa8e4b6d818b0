// The catalogue of all variants, in the order of plots and colours: those of this program, then
// those of plug-ins.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "variants/api/variant_info.h"
#include "variants/block/block.h"

namespace attn {

// What is added later moves none that are there.
const std::deque<VariantInfo>& all_variants();
// The variant of that name, or the stack of that text (see api/stack.h), "full+2·linear", or of
// that name, "based"; if there is none, an Error that suggests the nearest name.
const VariantInfo& find_variant(std::string_view name);
// The stack of these layers; where all are equal, their variant and its parameters.
LayerVariant find_stack(const std::vector<LayerVariant>& layers);
// The same; null if there is none.
const VariantInfo* variant_named(std::string_view name);
// The variant with the layer of its paper around it, "mamba2[block=paper]", which find_variant()
// finds too; itself, where its paper's layer is the plain one. Where that layer is not built, an
// entry that runs no shape.
const VariantInfo& with_paper_block(const VariantInfo& info);
// What block=`value` makes of the variant: of mixer, itself; of paper, with_paper_block(). Error
// for another value.
const VariantInfo& in_block(const VariantInfo& info, std::string_view value);
std::string plain_name(std::string_view name);  // "mamba2" of "mamba2[block=paper]", else `name`
// find_variant(name), with the layer of its paper where `params` has block=paper (kBlockParam).
const VariantInfo& find_variant(std::string_view name, const Params& params);
// Exact softmax attention: the reference of fidelity and of speed comparisons, and the attention of
// a model's layers that a variant cannot serve.
const VariantInfo& exact_reference();
// Whether it is exact attention, decoding included, with this choice of a parameter alone: false
// where the choice makes its decoder forget, or has no effect without other parameters.
bool is_exact_with(const std::string& param, const std::string& choice);

// The family of variants that are written in Python, beside families(), and how their names begin:
// no other variant's does, so that a name alone tells them.
inline constexpr const char* kPythonFamily = "python";
inline constexpr std::string_view kPythonNames = "python_";

// Adds the variant of a plug-in, a file with this hash, to the end of the catalogue. Error where
// the name is taken or no name, or the family is none of families(), or name and family do not say
// alike that it is written in Python.
void add_variant(VariantInfo info, const std::string& file_hash);
// The hash of the plug-in that the variant is from; "" for a variant of this program. Of a stack,
// the hashes of its layers' plug-ins.
std::string variant_plugin(std::string_view name);

}  // namespace attn
