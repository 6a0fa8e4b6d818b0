// Sizes of the caches, for kernels that choose their tiles by them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attn {

// In bytes; nullopt: the system does not say.
struct CacheSizes {
  std::optional<int64_t> l1d, l2, l3;
};
// Of processor 0.
CacheSizes cache_sizes();
// As the folders index0, index1 .. of `folder` tell.
CacheSizes cache_sizes(const std::string& folder);
// "48K", "2048K" and "1M" as bytes; nullopt: no such size.
std::optional<int64_t> bytes_of_size(const std::string& text);

// Bytes of a core's second-level cache; 512 KiB where the system does not say.
int64_t second_level_cache();

}  // namespace attn
