// Layers that several papers of this family put around their mixers, as data; see
// variants/api/block.h. Each paper's own file says what it adds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "variants/api/block.h"

namespace attn {

// Mamba-2's. Dao and Gu 2024, arXiv:2405.21060, figure 6.
inline LayerBlock mamba2_layer(std::vector<std::string> notes) {
  return {.expansion = 2,
          .one_key_head = true,
          .convolution = {.kernel = 4, .bias = true},
          .silu_queries = true,
          .silu_keys = true,
          .silu_values = true,
          .skip = LayerBlock::Skip::head,
          .norm = LayerBlock::Norm::rms,
          .gate = LayerBlock::Gate::silu,
          .gate_before_norm = true,
          .notes = std::move(notes)};
}

// DeltaNet's. Yang et al. 2024, arXiv:2406.06484, section 4.1.
inline LayerBlock delta_layer(std::vector<std::string> notes) {
  return {.convolution = {.kernel = 4},
          .silu_queries = true,
          .silu_keys = true,
          .silu_values = true,
          .norm = LayerBlock::Norm::rms_of_heads,
          .notes = std::move(notes)};
}

}  // namespace attn
