// Decoding by softmax attention to some past positions. The KV cache has a slot for each position
// that a later query can see. A step costs 4·d FLOPs for each query and visible position. It reads
// 2·d numbers for a position, once for neighbouring queries of a group that see the same slots.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "variants/api/decoder.h"
#include "variants/softmax/softmax.h"

namespace attn {

// Every step-th slot of [begin, end), from begin on.
struct Slots {
  int64_t begin = 0, end = 0, step = 1;
  int64_t count() const { return (end - begin + step - 1) / step; }
  bool operator==(const Slots&) const = default;
};

struct CacheLayout {
  int64_t slots = 0;
  // The slot that a new position is written to.
  std::function<int64_t(int64_t position)> slot_of = [](int64_t position) { return position; };
  // The slots that the query at `position` sees, including its own. `head` is a query head, counted
  // over all batch entries.
  std::function<std::vector<Slots>(int64_t head, int64_t position)> visible_slots;
  bool by_head = true;  // false: the visible slots of head 0 hold for all heads
};

// Logits are scaled by 1/sqrt(head_dim).
std::unique_ptr<Decoder> pattern_decoder(const Shape& position, int64_t capacity,
                                         CacheLayout layout);

// The slots of positions [begin, end) in a ring buffer of at least as many slots.
std::vector<Slots> ring_slots(Span positions, int64_t slots);

}  // namespace attn
