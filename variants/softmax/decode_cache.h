// How the softmax decoder keeps keys and values: in `real`, or in bfloat16; typed_cache.h has the
// other types. A cache scores queries against a block of positions and adds the weighted values;
// the steps of softmax_decoder.cc are the same for all. Private to the engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/base/span.h"
#include "core/simd/fetch.h"
#include "variants/softmax/paired_cache.h"
#include "variants/softmax/panel_cache.h"
#include "variants/softmax/softmax_merge.h"

namespace attn {

inline constexpr int64_t kDecodeBlock = 4 * kPanel;  // positions at a time: their scores stay in L1

inline real decode_factor(int64_t dim) {  // of logits, in units of log2
  return static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
}

// Where positions are held: the first ones for good, the last ones in a ring behind them.
struct HeldSlots {
  int64_t count, first = 0;  // all slots, and those of first positions

  int64_t slot_of(int64_t position) const {
    return position < first ? position : first + (position - first) % (count - first);
  }
};

// Calls visit(slot, count, is_whole) for the panels among `count` slots from `slot` on, which
// begins a panel: whole ones together, then the narrower last one of `slots`.
template <class Visit>
void visit_panels(int64_t slots, int64_t slot, int64_t count, const Visit& visit) {
  const int64_t wide = std::clamp<int64_t>(slots / kPanel * kPanel - slot, 0, count);
  if (wide > 0) visit(slot, wide, true);
  if (count > wide) visit(slot + wide, count - wide, false);
}

inline void scale_queries(const real* q, int64_t group, int64_t dim, real* to) {
  const real scale = decode_factor(dim);
  for (int64_t i = 0; i < group * dim; ++i) to[i] = scale * q[i];
}

// Rows of values, of so many bytes each, that are read together: column by column, each from what
// was fetched in order, kFetchedAhead (fetch.h) before.
inline int64_t fetched_rows(int64_t row_bytes) {
  return std::max<int64_t>(1, kFetchedAhead / row_bytes);
}

// Logits [group, count], rows `stride` apart, of positions from `slot` on, which begins a panel.
inline void score_panels(const PanelCache& cache, int64_t slots, int64_t dim, int64_t head,
                         int64_t slot, int64_t count, int64_t group, const real* queries,
                         real* logits, int64_t stride = kDecodeBlock) {
  visit_panels(slots, slot, count, [&](int64_t at, int64_t some, bool is_whole) {
    const real* const panel = cache.panel(head, at);
    product(group, some, dim, {queries, dim},
            is_whole ? Right{panel, kPanel, dim * kPanel, ahead_of(panel)}
                     : Right{panel, cache.panel_width(at)},
            logits + (at - slot), stride);
  });
}

// into.sum = into.rescale · into.sum + weights · values [count, dim]; rows of weights are `stride`
// apart.
inline void add_values(int64_t count, const real* weights, int64_t stride, const real* values,
                       int64_t dim, const GroupSums& into) {
  const int64_t rows = fetched_rows(dim * int64_t{sizeof(real)});
  for (int64_t first = 0; first < count; first += rows) {
    const real* const from = values + first * dim;
    add_product(into.rows, dim, std::min(rows, count - first), {weights + first, stride},
                {from, dim, kPanel, ahead_of(from)}, into.sum, dim,
                first == 0 ? into.rescale : nullptr);
  }
}

// The same logits in bfloat16.
inline void score_pairs(const PairedCache& cache, int64_t slots, int64_t dim, int64_t head,
                        int64_t slot, int64_t count, int64_t group, const real* queries,
                        real* logits) {
  const int64_t pairs = pairs_of(dim);
  const PairedLeft left{reinterpret_cast<const BFloat16Pair*>(queries), pairs};
  visit_panels(slots, slot, count, [&](int64_t at, int64_t some, bool is_whole) {
    const BFloat16Pair* const panel = cache.panel(head, at);
    const PairedRight right{panel, is_whole ? kPanel : cache.panel_width(at), pairs * kPanel,
                            ahead_of(panel)};
    paired_product(group, some, pairs, left, right, decode_factor(dim), logits + (at - slot),
                   kDecodeBlock);
  });
}

// Adds values with weights, which are rounded to bfloat16 in their place.
inline void add_pairs(const PairedCache& cache, int64_t dim, int64_t head, int64_t slot,
                      int64_t count, real* weights, const GroupSums& into) {
  const PairedLeft left = round_to_pairs(into.rows, 2 * pairs_of(count), weights, kDecodeBlock);
  const int64_t rows = fetched_rows(dim * int64_t{sizeof(BFloat16Pair)});
  for (int64_t first = 0; first < pairs_of(count); first += rows) {
    const BFloat16Pair* const from = cache.values(head, slot) + first * dim;
    add_paired_product(into.rows, dim, std::min(rows, pairs_of(count) - first),
                       {left.data + first * left.step, left.row, left.step},
                       {from, dim, kPanel, ahead_of(from)}, into.sum, dim,
                       first == 0 ? into.rescale : nullptr);
  }
}

// Queries are scaled, and the output is a row of `real`.
class RealCache {
 public:
  using Element = real;

  RealCache(int64_t heads, HeldSlots slots, int64_t dim)
      : slots_(slots), dim_(dim), cache_(heads, slots.count, dim, dim) {}

  int64_t query_reals(int64_t group) const { return padded_reals(group * dim_); }
  void take_queries(const real* q, int64_t group, real* to) const {
    scale_queries(q, group, dim_, to);
  }
  void put(int64_t head, int64_t position, const real* k, const real* v) const {
    cache_.put(head, slots_.slot_of(position), k, v);
  }
  const HeldSlots& slots() const { return slots_; }
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const {
    score_panels(cache_, slots_.count, dim_, head, slot, count, group, queries, logits);
  }
  void add(int64_t head, int64_t slot, int64_t count, real* logits, const GroupSums& into) const {
    weigh_keys(count, logits, kDecodeBlock, into);
    add_values(count, logits, kDecodeBlock, cache_.values(head, slot), dim_, into);
  }
  void answers(int64_t) {}  // every position is read the same way
  int64_t read_bytes(int64_t, int64_t, int64_t count) const { return count * written_bytes(); }
  int64_t written_bytes() const { return 2 * dim_ * int64_t{sizeof(Element)}; }
  int64_t bytes(int64_t) const { return cache_.bytes(); }

 private:
  HeldSlots slots_;
  int64_t dim_;
  PanelCache cache_;
};

// Logits are scaled, weights are rounded to bfloat16 before they are multiplied by values, and the
// output is rounded, as in forward_storage.h.
class BFloat16Cache {
 public:
  using Element = BFloat16;

  BFloat16Cache(int64_t heads, HeldSlots slots, int64_t dim)
      : slots_(slots), dim_(dim), pairs_(pairs_of(dim)), cache_(heads, slots.count, dim, dim) {}

  int64_t query_reals(int64_t group) const { return padded_reals(reals_of_pairs(group * pairs_)); }
  void take_queries(const BFloat16* q, int64_t group, real* to) const {
    pack_pairs(q, group, dim_, reinterpret_cast<BFloat16Pair*>(to));
  }
  void put(int64_t head, int64_t position, const BFloat16* k, const BFloat16* v) const {
    cache_.put(head, slots_.slot_of(position), k, v);
  }
  const HeldSlots& slots() const { return slots_; }
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const {
    score_pairs(cache_, slots_.count, dim_, head, slot, count, group, queries, logits);
  }
  void add(int64_t head, int64_t slot, int64_t count, real* logits, const GroupSums& into) const {
    weigh_keys(count, logits, kDecodeBlock, into);
    add_pairs(cache_, dim_, head, slot, count, logits, into);
  }
  void answers(int64_t) {}
  int64_t read_bytes(int64_t, int64_t, int64_t count) const { return count * written_bytes(); }
  int64_t written_bytes() const { return 2 * dim_ * int64_t{sizeof(Element)}; }
  int64_t bytes(int64_t) const { return cache_.bytes(); }

 private:
  HeldSlots slots_;
  int64_t dim_, pairs_;
  PairedCache cache_;
};

}  // namespace attn
