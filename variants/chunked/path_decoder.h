// Decoding of PaTH (Yang et al. 2025, arXiv:2505.16381, section 3.3): each step moves every cached
// key by the step's map, then attends to all. 8·d FLOPs a cached position and step; a state of 2·d
// numbers a position.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"

namespace attn {

// With the gates w and beta of variants/chunked/path.cc. Null where query heads share keys.
std::unique_ptr<Decoder> path_decoder(const Shape& position, int64_t capacity);

}  // namespace attn
