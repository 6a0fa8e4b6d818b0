// Makes reads of unwritten memory visible, for checks.
#pragma once

namespace attn {

// Fills the pool's free blocks (memory.h) with NaN, except for their first numbers. A variant that
// reads memory before it writes to it then returns NaN.
void spoil_free_memory();

}  // namespace attn
