// The positions that a decoder with eviction holds: keys and values in slots, and of each slot the
// position and what its method ranks it by. Slots [0, count) are used, of every head alike.
// (2·dim numbers + 4 to 16 bytes) a slot. Private to the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/base/memory.h"
#include "variants/softmax/panel_cache.h"

namespace attn {

// What is held of a slot beside key, value and position.
struct SlotRecords {
  bool scores = false;   // a double
  bool weights = false;  // a real: of the last query

  int64_t bytes() const {
    return int64_t{sizeof(int32_t)} + (scores ? int64_t{sizeof(double)} : 0) +
           (weights ? int64_t{sizeof(real)} : 0);
  }
};

class HeldPositions {
 public:
  HeldPositions(int64_t heads, int64_t slots, int64_t dim, SlotRecords records)
      : heads_(heads),
        slots_(slots),
        dim_(dim),
        records_(records),
        cache_(heads, slots, dim, dim),
        positions_(block<int32_t>(true)),
        scores_(block<double>(records.scores)),
        weights_(block<real>(records.weights)) {}

  static int64_t bytes_of(int64_t heads, int64_t slots, int64_t dim, SlotRecords records) {
    return heads * slots * (2 * dim * int64_t{sizeof(real)} + records.bytes());
  }
  int64_t bytes() const { return bytes_of(heads_, slots_, dim_, records_); }
  int64_t slots() const { return slots_; }
  const PanelCache& cache() const { return cache_; }

  int32_t* positions(int64_t head) const { return row<int32_t>(positions_, head); }
  double* scores(int64_t head) const { return row<double>(scores_, head); }
  real* weights(int64_t head) const { return row<real>(weights_, head); }

  void put(int64_t head, int64_t slot, int64_t position, const real* k, const real* v) const {
    cache_.put(head, slot, k, v);
    positions(head)[slot] = static_cast<int32_t>(position);
  }
  // Slot `from` of `other`, which may be this; `key` is a workspace of dim numbers.
  void copy(int64_t head, const HeldPositions& other, int64_t from, int64_t to, real* key) const {
    const real* const column = other.cache_.panel(head, from) + from % kPanel;
    const int64_t width = other.cache_.panel_width(from);
    for (int64_t c = 0; c < dim_; ++c) key[c] = column[c * width];
    put(head, to, other.positions(head)[from], key, other.cache_.values(head, from));
    if (records_.scores) scores(head)[to] = other.scores(head)[from];
    if (records_.weights) weights(head)[to] = other.weights(head)[from];
  }

 private:
  template <class T>
  Block block(bool is_held) const {
    return is_held ? Block(static_cast<size_t>(heads_ * slots_) * sizeof(T), Purpose::activations)
                   : Block();
  }
  template <class T>
  T* row(const Block& of, int64_t head) const {
    return static_cast<T*>(of.data()) + head * slots_;
  }

  int64_t heads_, slots_, dim_;
  SlotRecords records_;
  PanelCache cache_;
  Block positions_, scores_, weights_;  // [heads, slots]
};

}  // namespace attn
