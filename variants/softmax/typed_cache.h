// A cache whose keys and values are of any CacheType. Beside integers, the newest positions are
// held in float32 too: a block reads all its positions as they are cached, then takes the logits
// and the values of the newest ones from there. So a step that is taken back loses nothing, and a
// ring buffer needs no other layout. Private to the engine.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "variants/softmax/cache_parts.h"

namespace attn {

class TypedCache {
 public:
  using Element = real;

  TypedCache(int64_t heads, HeldSlots slots, int64_t dim, CacheType type)
      : slots_(slots.count),
        dim_(dim),
        type_(type),
        keys_(cached_keys(keys_of(type), heads, slots_, dim)),
        values_(cached_values(values_of(type), heads, slots_, dim)) {
    ATTN_CHECK(slots.first == 0, "a cache of {} is a ring alone", name_of(type));
    if (keeps_recent(type)) recent_.emplace(heads, recent_positions(slots_), dim, dim);
  }

  static int64_t recent_positions(int64_t slots) { return std::min(kRecentPositions, slots); }
  // What bytes() is of such a cache.
  static int64_t bytes_of(CacheType type, int64_t heads, int64_t slots, int64_t dim) {
    const CacheNumber key = keys_of(type), value = values_of(type);
    const int64_t each = cached_key_count(key, slots) * cached_key_bytes(key, dim) +
                         cached_value_count(value, slots) * cached_value_bytes(value, dim);
    const int64_t recent = keeps_recent(type) ? recent_positions(slots) : 0;
    return heads * (each + 2 * recent * dim * int64_t{sizeof(real)});
  }

  // Queries are scaled for the newest positions; behind them they are as the keys take them. Where
  // keys are of bfloat16, both are of the same rounded numbers.
  int64_t query_reals(int64_t group) const {
    return padded_reals(group * dim_) + keys_->query_reals(group);
  }
  void take_queries(const real* q, int64_t group, real* to) const {
    if (keys_of(type_) == CacheNumber::bfloat16) {
      const real scale = decode_factor(dim_);
      for (int64_t i = 0; i < group * dim_; ++i)
        to[i] = scale * static_cast<real>(to_float(to_bfloat16(static_cast<float>(q[i]))));
    } else {
      scale_queries(q, group, dim_, to);
    }
    keys_->take_queries(q, group, to + padded_reals(group * dim_));
  }
  void put(int64_t head, int64_t position, const real* k, const real* v) const {
    keys_->put(head, position % slots_, k);
    values_->put(head, position % slots_, v);
    if (recent_) recent_->put(head, position % recent_positions(slots_), k, v);
  }
  HeldSlots slots() const { return {slots_}; }
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const;
  void add(int64_t head, int64_t slot, int64_t count, real* logits, const GroupSums& into) const;

  // The position of the query that asks next.
  void answers(int64_t position) { newest_ = position; }
  // Bytes that a step at `position` reads of `count` slots, and that it writes.
  int64_t read_bytes(int64_t position, int64_t slot, int64_t count) const {
    int64_t recent = 0;
    each_recent(position, slot, count, [&](int64_t, int64_t) { ++recent; });
    return count * position_bytes() + recent * real_bytes();
  }
  int64_t written_bytes() const { return position_bytes() + (recent_ ? real_bytes() : 0); }
  int64_t bytes(int64_t) const {
    return keys_->bytes() + values_->bytes() + (recent_ ? recent_->bytes() : 0);
  }

 private:
  int64_t real_bytes() const { return 2 * dim_ * int64_t{sizeof(real)}; }
  int64_t position_bytes() const {
    return cached_key_bytes(keys_of(type_), dim_) + cached_value_bytes(values_of(type_), dim_);
  }
  // How many of the newest positions there are at `position`.
  int64_t recent_count(int64_t position) const {
    return std::min(recent_positions(slots_), position + 1);
  }
  // Calls visit(c, place) for the newest positions at `position` among `count` slots from `slot`
  // on: c is counted from `slot`, and `place` is where recent_ holds the position.
  template <class Visit>
  void each_recent(int64_t position, int64_t slot, int64_t count, const Visit& visit) const {
    if (!has_recent(position, slot, count)) return;
    for (int64_t p = position - recent_count(position) + 1; p <= position; ++p) {
      const int64_t c = p % slots_ - slot;
      if (c >= 0 && c < count) visit(c, p % recent_positions(slots_));
    }
  }
  // Their slots follow each other, and go on at 0 after the last one.
  bool has_recent(int64_t position, int64_t slot, int64_t count) const {
    if (!recent_) return false;
    const int64_t last = position % slots_, first = last - recent_count(position) + 1;
    return (first < slot + count && slot <= last) || (first < 0 && first + slots_ < slot + count);
  }

  int64_t slots_, dim_;
  CacheType type_;
  int64_t newest_ = -1;
  std::unique_ptr<CachedKeys> keys_;
  std::unique_ptr<CachedValues> values_;
  std::optional<PanelCache> recent_;  // position p at p % recent_positions()
};

inline void TypedCache::score(int64_t head, int64_t slot, int64_t count, int64_t group,
                              const real* queries, real* logits) const {
  keys_->score(head, slot, count, group, queries + padded_reals(group * dim_), logits);
  if (!has_recent(newest_, slot, count)) return;
  real exact[kRecentPositions];
  for (int64_t r = 0; r < group; ++r) {
    product(1, recent_count(newest_), dim_, {queries + r * dim_, dim_},
            {recent_->panel(head, 0), recent_->panel_width(0)}, exact, kRecentPositions);
    each_recent(newest_, slot, count,
                [&](int64_t c, int64_t place) { logits[r * kDecodeBlock + c] = exact[place]; });
  }
}

inline void TypedCache::add(int64_t head, int64_t slot, int64_t count, real* logits,
                            const GroupSums& into) const {
  weigh_keys(count, logits, kDecodeBlock, into);
  if (!has_recent(newest_, slot, count)) return values_->add(head, slot, count, logits, into);
  const Block moved(static_cast<size_t>(into.rows * kRecentPositions) * sizeof(real),
                    Purpose::workspace);
  real* const exact = static_cast<real*>(moved.data());
  std::fill_n(exact, into.rows * kRecentPositions, real(0));
  for (int64_t r = 0; r < into.rows; ++r)
    each_recent(newest_, slot, count, [&](int64_t c, int64_t place) {
      std::swap(exact[r * kRecentPositions + place], logits[r * kDecodeBlock + c]);
    });
  values_->add(head, slot, count, logits, into);
  add_product(into.rows, dim_, recent_count(newest_), {exact, kRecentPositions},
              {recent_->values(head, 0), dim_}, into.sum, dim_);
}

}  // namespace attn
