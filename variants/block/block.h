// The layer that a paper puts around its mixer: one engine for every LayerBlock
// (variants/api/block.h). It is a mixer: it reads the layer's input and makes its projections
// itself, so that all that measures and checks mixers measures and checks it.
#pragma once

#include <string>
#include <string_view>

#include "variants/api/variant_info.h"

namespace attn {

// The parameter that asks for it: "mamba2[block=paper]".
inline constexpr const char* kBlockParam = "block";
// Whether `block` asks for it: some variants have a parameter of that name themselves.
bool asks_for_layer(const VariantInfo& info);

// The entry of `info` with its block around it, "<name>[block=paper]", which `info` must outlive.
// Its parameters are those of `info` and kBlockParam. Where the block is not built (lacks_block),
// an entry that can run no shape, for that reason.
VariantInfo paper_block(const VariantInfo& info);

// "mamba2[block=paper]" of "mamba2", and back; "" where the text is of another form.
std::string paper_name(std::string_view variant);
std::string_view inside_paper(std::string_view text);

}  // namespace attn
