// How the softmax decoder keeps keys and values: in `real`, or in bfloat16. A cache scores queries
// against a block of positions and adds the weighted values; the steps of softmax_decoder.cc are
// the same for both. Private to the engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/base/span.h"
#include "variants/softmax/paired_cache.h"
#include "variants/softmax/panel_cache.h"
#include "variants/softmax/softmax_merge.h"

namespace attn {

inline constexpr int64_t kDecodeBlock = 4 * kPanel;  // positions at a time: their scores stay in L1

inline real decode_factor(int64_t dim) {  // of logits, in units of log2
  return static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
}

// Calls visit(slot, count, is_whole) for the panels among `count` slots from `slot` on, which
// begins a panel: whole ones together, then the narrower last one of `slots`.
template <class Visit>
void visit_panels(int64_t slots, int64_t slot, int64_t count, const Visit& visit) {
  const int64_t wide = std::clamp<int64_t>(slots / kPanel * kPanel - slot, 0, count);
  if (wide > 0) visit(slot, wide, true);
  if (count > wide) visit(slot + wide, count - wide, false);
}

// Queries are scaled, and the output is a row of `real`.
class RealCache {
 public:
  using Element = real;

  RealCache(int64_t heads, int64_t slots, int64_t dim)
      : slots_(slots), dim_(dim), cache_(heads, slots, dim, dim) {}

  int64_t query_reals(int64_t group) const { return padded_reals(group * dim_); }
  void take_queries(const real* q, int64_t group, real* to) const {
    const real scale = decode_factor(dim_);
    for (int64_t i = 0; i < group * dim_; ++i) to[i] = scale * q[i];
  }
  void put(int64_t head, int64_t slot, const real* k, const real* v) const {
    cache_.put(head, slot, k, v);
  }
  // Logits [group, kDecodeBlock] of `count` positions from `slot` on, which begins a panel.
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const {
    visit_panels(slots_, slot, count, [&](int64_t at, int64_t some, bool is_whole) {
      const real* const panel = cache_.panel(head, at);
      product(group, some, dim_, {queries, dim_},
              is_whole ? packed(panel, dim_) : Right{panel, cache_.panel_width(at)},
              logits + (at - slot), kDecodeBlock);
    });
  }
  void add(int64_t head, int64_t slot, int64_t count, real* logits, const GroupSums& into) const {
    add_keys(count, logits, kDecodeBlock, cache_.values(head, slot), dim_, into);
  }
  int64_t bytes() const { return cache_.bytes(); }

 private:
  int64_t slots_, dim_;
  PanelCache cache_;
};

// Logits are scaled, weights are rounded to bfloat16 before they are multiplied by values, and the
// output is rounded, as in forward_storage.h.
class BFloat16Cache {
 public:
  using Element = BFloat16;

  BFloat16Cache(int64_t heads, int64_t slots, int64_t dim)
      : slots_(slots), dim_(dim), pairs_(pairs_of(dim)), cache_(heads, slots, dim, dim) {}

  int64_t query_reals(int64_t group) const { return padded_reals(reals_of_pairs(group * pairs_)); }
  void take_queries(const BFloat16* q, int64_t group, real* to) const {
    pack_pairs(q, group, dim_, reinterpret_cast<BFloat16Pair*>(to));
  }
  void put(int64_t head, int64_t slot, const BFloat16* k, const BFloat16* v) const {
    cache_.put(head, slot, k, v);
  }
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const {
    const PairedLeft left{reinterpret_cast<const BFloat16Pair*>(queries), pairs_};
    visit_panels(slots_, slot, count, [&](int64_t at, int64_t some, bool is_whole) {
      const PairedRight right{cache_.panel(head, at), is_whole ? kPanel : cache_.panel_width(at),
                              pairs_ * kPanel};
      paired_product(group, some, pairs_, left, right, decode_factor(dim_), logits + (at - slot),
                     kDecodeBlock);
    });
  }
  void add(int64_t head, int64_t slot, int64_t count, real* logits, const GroupSums& into) const {
    weigh_keys(count, logits, kDecodeBlock, into);
    const PairedLeft weights = round_to_pairs(into.rows, 2 * pairs_of(count), logits, kDecodeBlock);
    add_paired_product(into.rows, dim_, pairs_of(count), weights, {cache_.values(head, slot), dim_},
                       into.sum, dim_, into.rescale);
  }
  int64_t bytes() const { return cache_.bytes(); }

 private:
  int64_t slots_, dim_, pairs_;
  PairedCache cache_;
};

}  // namespace attn
