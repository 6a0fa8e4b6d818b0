// A cache of the keys and values of past positions in bfloat16: half the bytes of panel_cache.h.
// Keys are stored as panels of pairs [pairs_of(key_dim)][kPanel], values as pairs of positions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/memory.h"
#include "core/simd/bfloat16_product.h"

namespace attn {

class PairedCache {
 public:
  PairedCache(int64_t heads, int64_t positions, int64_t key_dim, int64_t value_dim)
      : positions_(positions),
        key_dim_(key_dim),
        value_dim_(value_dim),
        bytes_(static_cast<int64_t>(words(heads * positions * pairs_of(key_dim)) +
                                    words(heads * pairs_of(positions) * value_dim))),
        keys_(words(heads * positions * pairs_of(key_dim)), MemoryScope::current()),
        values_(words(heads * pairs_of(positions) * value_dim), MemoryScope::current()) {
    // The second value of a pair may be multiplied by 0 before it is written.
    std::memset(values_.data(), 0, values_.bytes());
  }

  // Of BFloat16, or of `real`, which is rounded.
  template <class Number>
  void put(int64_t head, int64_t position, const Number* key, const Number* value) const {
    const int64_t width = panel_width(position);
    BFloat16Pair* const column = panel_at(head, position) + position % kPanel;
    for (int64_t p = 0; p < pairs_of(key_dim_); ++p)
      column[p * width] =
          pair_of(half_of(key[2 * p]), 2 * p + 1 < key_dim_ ? half_of(key[2 * p + 1]) : BFloat16());
    BFloat16* const row = reinterpret_cast<BFloat16*>(values_at(head, position)) + position % 2;
    for (int64_t c = 0; c < value_dim_; ++c) row[2 * c] = half_of(value[c]);
  }
  // The panel that starts at `position`, a multiple of kPanel: [pairs_of(key_dim)][panel_width].
  const BFloat16Pair* panel(int64_t head, int64_t position) const {
    return panel_at(head, position);
  }
  int64_t panel_width(int64_t position) const {
    return std::min(kPanel, positions_ - position / kPanel * kPanel);
  }
  // The pairs of values from `position`, an even number, on: rows of value_dim pairs.
  const BFloat16Pair* values(int64_t head, int64_t position) const {
    return values_at(head, position);
  }
  int64_t bytes() const { return bytes_; }  // before blocks are rounded up to whole cache lines

 private:
  static BFloat16 half_of(BFloat16 x) { return x; }
  static BFloat16 half_of(real x) { return to_bfloat16(static_cast<float>(x)); }
  static size_t words(int64_t pairs) { return static_cast<size_t>(pairs) * sizeof(BFloat16Pair); }
  BFloat16Pair* panel_at(int64_t head, int64_t position) const {
    return static_cast<BFloat16Pair*>(keys_.data()) +
           (head * positions_ + position / kPanel * kPanel) * pairs_of(key_dim_);
  }
  BFloat16Pair* values_at(int64_t head, int64_t position) const {
    return static_cast<BFloat16Pair*>(values_.data()) +
           (head * pairs_of(positions_) + position / 2) * value_dim_;
  }

  int64_t positions_, key_dim_, value_dim_, bytes_;
  Block keys_, values_;
};

}  // namespace attn
