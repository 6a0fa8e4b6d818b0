// The measured peak's inner loop: independent chains of fused multiply-adds that fill every
// pipeline of the instruction set that the kernels run on (isa.h). Its rate is the ceiling of
// everything here.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

// `rounds` times x = x·factor + offset on all lanes of all chains; returns their sum. Not inlined,
// so that no call to a clock makes the compiler spill the chains inside the loop.
real fma_chains(int64_t rounds, real factor, real offset);
int64_t fma_round_flops();  // of one round: 2 · chains · lanes

}  // namespace attn
