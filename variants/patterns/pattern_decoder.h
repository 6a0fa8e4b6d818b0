// Decoding by softmax attention to some of the past: a cache with a slot for each position that is
// still to be seen. A step costs 4·d FLOPs for each query and position seen, and reads 2·d numbers
// for the position, once for neighbouring queries of a group that see the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "variants/api/decoder.h"
#include "variants/softmax/softmax.h"

namespace attn {

struct CacheLayout {
  int64_t slots = 0;
  // The slot that holds a position from now on; what it held is forgotten.
  std::function<int64_t(int64_t position)> place = [](int64_t position) { return position; };
  // Slots that its query sees, itself among them; `head` of queries, of all batch entries.
  std::function<std::vector<Span>(int64_t head, int64_t position)> seen;
  bool by_head = true;  // false: all heads see the same, and head 0 alone is asked for
};

// Logits are scaled by 1/sqrt(head_dim).
std::unique_ptr<Decoder> pattern_decoder(const Shape& position, int64_t capacity,
                                         CacheLayout layout);

// Positions [begin, end) in a ring of so many slots that hold them all.
std::vector<Span> ring_spans(Span positions, int64_t slots);

}  // namespace attn
