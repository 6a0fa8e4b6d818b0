// A block pattern from a rule: what each block of queries sees, for each head or batch entry and
// head. O(all lists), and no malloc in a steady loop.
#pragma once

#include <memory>

#include "variants/softmax/softmax.h"

namespace attn {

// append(set, block of queries, list): appends blocks of keys, ascending; for the blocks of `len`
// queries.
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
