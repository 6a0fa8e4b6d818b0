// Makes reads of unwritten memory visible, for checks.
#pragma once

namespace attn {

// Fills the pool's free blocks (memory.h) with bytes of 255, which makes each number NaN but the
// first ones of a block: who then reads what it has not written shows it.
void spoil_free_memory();

}  // namespace attn
