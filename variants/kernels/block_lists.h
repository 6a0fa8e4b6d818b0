// A block pattern from a rule: what each block of queries sees, for each head or batch entry and
// head. O(all lists).
#pragma once

#include <memory>
#include <vector>

#include "variants/kernels/band.h"

namespace attn {

// seen(set, block of queries): blocks of keys, ascending; for the blocks of `len` queries.
template <class Seen>
std::shared_ptr<const BlockPattern> block_lists(int64_t len, int64_t size, int64_t sets,
                                                const Seen& seen) {
  auto made = std::make_shared<BlockPattern>(BlockPattern{.size = size, .begin = {0}});
  for (int64_t set = 0; set < sets; ++set)
    for (int64_t b = 0; b * size < len; ++b) {
      const std::vector<int64_t> keys = seen(set, b);
      made->keys.insert(made->keys.end(), keys.begin(), keys.end());
      made->begin.push_back(static_cast<int64_t>(made->keys.size()));
    }
  return made;
}

}  // namespace attn
