// Biases of logits when decoding, as in logit_bias.h: sums of log forget gates, kept beside the KV
// cache as one double a position and head, or a table over distances. Two operations a cached
// position and query. Private to the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>

#include "core/simd/row_ops.h"
#include "core/tensor/tensor.h"
#include "variants/softmax/decode_cache.h"
#include "variants/softmax/logit_bias.h"

namespace attn {

class DecodeBias {
 public:
  // `gates`: whether a position of each of the `heads` comes with a raw gate x, whose log-gate is
  // log σ(x). `distances`, where defined: [query heads, positions], the bias at distance 0, 1, ...
  DecodeBias(int64_t heads, int64_t slots, bool gates, const Tensor& distances)
      : slots_(slots),
        bytes_(gates ? heads * slots * int64_t{sizeof(double)} : 0),
        distances_(distances) {
    if (gates) sums_ = Block(static_cast<size_t>(bytes_), Purpose::activations);
  }

  bool is_gated() const { return sums_.data() != nullptr; }
  int64_t bytes() const { return bytes_; }
  int64_t gate_bytes() const { return is_gated() ? static_cast<int64_t>(sizeof(double)) : 0; }

  // The gate of a head's position.
  void put(int64_t head, int64_t position, real gate) const {
    real log_gate = 0;
    softplus_row(1, &gate, -1, -1, &log_gate);
    const double before = position == 0 ? 0 : sums_of(head)[(position - 1) % slots_];
    sums_of(head)[position % slots_] =
        before + not_below_closed(static_cast<double>(log_gate)) * std::numbers::log2e;
  }
  // Adds to the logits [group, kDecodeBlock], in units of log2, of `count` slots from `slot` on,
  // for a query at `position`.
  void add(int64_t head, int64_t position, int64_t slot, int64_t count, int64_t group,
           real* logits) const {
    if (is_gated()) {
      const double* const sums = sums_of(head);
      const double here = sums[position % slots_];
      for (int64_t c = 0; c < count; ++c) logits[c] += static_cast<real>(here - sums[slot + c]);
    }
    if (!distances_.defined()) return;
    const int64_t own = position % slots_, rows = distances_.dim(0), size = distances_.dim(1);
    for (int64_t r = 0; r < group; ++r) {
      const real* const row = distances_.data() + (head * group + r) % rows * size;
      for (int64_t c = 0; c < count; ++c) {
        const int64_t back = own - slot - c;
        logits[r * kDecodeBlock + c] +=
            row[back < 0 ? back + slots_ : back] * static_cast<real>(std::numbers::log2e);
      }
    }
  }

 private:
  double* sums_of(int64_t head) const { return static_cast<double*>(sums_.data()) + head * slots_; }

  int64_t slots_, bytes_;
  Block sums_;  // [heads, slots] numbers of double, in units of log2; empty without gates
  Tensor distances_;
};

}  // namespace attn
