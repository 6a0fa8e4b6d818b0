// Sizes of the caches, for kernels that choose their tiles by them.
#pragma once

#include <cstdint>

namespace attn {

// Bytes of a core's second-level cache; 512 KiB where the system does not tell.
int64_t second_level_cache();

}  // namespace attn
