// Decoding of level_attention(): a state for each level, levels_of(capacity)·m·d numbers a head. A
// step at position t reads as many of them as t has binary ones, and one more.
#pragma once

#include <memory>

#include "variants/api/decoder.h"
#include "variants/chunked/log_decay.h"

namespace attn {

// Of the gates dt and level weights: values and decays by steps softplus(dt) with the learned
// A_log [heads], weights softplus(levels). Null where query heads share keys.
std::unique_ptr<Decoder> level_decoder(const Shape& position, int64_t capacity, const Var& a_log,
                                       int64_t levels);

}  // namespace attn
