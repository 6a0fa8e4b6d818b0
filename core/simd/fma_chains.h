// The loop that measures peak FLOP/s: independent chains of fused multiply-adds that fill every
// pipeline of the selected instruction set (isa.h). No kernel can be faster.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// Computes x = x·factor + offset `rounds` times on all lanes of all chains; returns their sum. The
// function is not inlined: next to a call to a clock, the compiler would spill the chains to
// memory.
real fma_chains(int64_t rounds, real factor, real offset);
int64_t fma_round_flops();  // of one round: 2 · chains · lanes

}  // namespace attn
