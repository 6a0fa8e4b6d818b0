// Makes a block pattern from a function that lists the visible blocks. O(length of all lists). A
// loop in its steady state does not call malloc.
#pragma once

#include <memory>

#include "variants/softmax/softmax.h"

namespace attn {

// Calls append(set, block, list) for each of `sets` sets and each block of `len` queries. append()
// appends the visible blocks of keys to the list, ascending.
template <class Append>
std::shared_ptr<const BlockPattern> block_lists(int64_t len, int64_t size, int64_t sets,
                                                const Append& append) {
  const auto made = std::allocate_shared<BlockPattern>(Recycled<BlockPattern>());
  made->size = size;
  made->begin.push_back(0);
  for (int64_t set = 0; set < sets; ++set)
    for (int64_t b = 0; b * size < len; ++b) {
      append(set, b, made->keys);
      made->begin.push_back(static_cast<int64_t>(made->keys.size()));
    }
  return made;
}

}  // namespace attn
