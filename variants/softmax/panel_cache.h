// A cache of the keys and values of past positions, for decoders that attend to all of them. Keys
// are stored as [key_dim][kPanel] panels, so that the scores of a panel read memory in order.
// Memory for all positions is allocated at once: (key_dim + value_dim) numbers a position.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/simd/product.h"
#include "core/tensor/tensor.h"

namespace attn {

class PanelCache {
 public:
  PanelCache(int64_t heads, int64_t positions, int64_t key_dim, int64_t value_dim)
      : keys_({heads, positions, key_dim}), values_({heads, positions, value_dim}) {}

  void put(int64_t head, int64_t position, const real* key, const real* value) const {
    const int64_t width = panel_width(position), dim = keys_.dim(2);
    real* const column = panel_at(head, position) + position % kPanel;
    for (int64_t c = 0; c < dim; ++c) column[c * width] = key[c];
    std::copy_n(value, values_.dim(2), values_.data() + row(head, position) * values_.dim(2));
  }
  // The panel that starts at `position`, a multiple of kPanel: [key_dim][panel_width]. The last
  // panel is only as wide as the remaining positions.
  const real* panel(int64_t head, int64_t position) const { return panel_at(head, position); }
  int64_t panel_width(int64_t position) const {
    return std::min(kPanel, keys_.dim(1) - position / kPanel * kPanel);
  }
  const real* values(int64_t head, int64_t position) const {
    return values_.data() + row(head, position) * values_.dim(2);
  }
  int64_t bytes() const {
    return (keys_.size() + values_.size()) * static_cast<int64_t>(sizeof(real));
  }

 private:
  int64_t row(int64_t head, int64_t position) const { return head * keys_.dim(1) + position; }
  real* panel_at(int64_t head, int64_t position) const {
    return keys_.data() + row(head, position / kPanel * kPanel) * keys_.dim(2);
  }

  Tensor keys_, values_;  // [heads, positions, dim], each panel of the keys transposed
};

}  // namespace attn
