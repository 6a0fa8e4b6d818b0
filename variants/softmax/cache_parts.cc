// Keys and values of a cache in float32, bfloat16 and integers; see cache_parts.h.
#include "variants/softmax/cache_parts.h"

namespace attn {
namespace {

// A cache of keys and values, of which one has no width: nothing of it is read.
class RealKeys final : public CachedKeys {
 public:
  RealKeys(int64_t heads, int64_t slots, int64_t dim)
      : slots_(slots), dim_(dim), cache_(heads, slots, dim, 0) {}

 private:
  int64_t bytes() const override { return cache_.bytes(); }
  int64_t query_reals(int64_t group) const override { return padded_reals(group * dim_); }
  void take_queries(const real* q, int64_t group, real* to) const override {
    scale_queries(q, group, dim_, to);
  }
  void put(int64_t head, int64_t slot, const real* key) const override {
    cache_.put(head, slot, key, key);
  }
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const override {
    score_panels(cache_, slots_, dim_, head, slot, count, group, queries, logits);
  }

  int64_t slots_, dim_;
  PanelCache cache_;
};

class RealValues final : public CachedValues {
 public:
  RealValues(int64_t heads, int64_t slots, int64_t dim) : dim_(dim), cache_(heads, slots, 0, dim) {}

 private:
  int64_t bytes() const override { return cache_.bytes(); }
  void put(int64_t head, int64_t slot, const real* value) const override {
    cache_.put(head, slot, value, value);
  }
  void add(int64_t head, int64_t slot, int64_t count, real* weights,
           const GroupSums& into) const override {
    add_values(count, weights, kDecodeBlock, cache_.values(head, slot), dim_, into);
  }

  int64_t dim_;
  PanelCache cache_;
};

class BFloat16Keys final : public CachedKeys {
 public:
  BFloat16Keys(int64_t heads, int64_t slots, int64_t dim)
      : slots_(slots), dim_(dim), pairs_(pairs_of(dim)), cache_(heads, slots, dim, 0) {}

 private:
  int64_t bytes() const override { return cache_.bytes(); }
  int64_t query_reals(int64_t group) const override {
    return padded_reals(reals_of_pairs(group * pairs_));
  }
  void take_queries(const real* q, int64_t group, real* to) const override {
    round_rows(q, group, dim_, dim_, reinterpret_cast<BFloat16Pair*>(to), pairs_);
  }
  void put(int64_t head, int64_t slot, const real* key) const override {
    cache_.put(head, slot, key, key);
  }
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const override {
    score_pairs(cache_, slots_, dim_, head, slot, count, group, queries, logits);
  }

  int64_t slots_, dim_, pairs_;
  PairedCache cache_;
};

class BFloat16Values final : public CachedValues {
 public:
  BFloat16Values(int64_t heads, int64_t slots, int64_t dim)
      : dim_(dim), cache_(heads, slots, 0, dim) {}

 private:
  int64_t bytes() const override { return cache_.bytes(); }
  void put(int64_t head, int64_t slot, const real* value) const override {
    cache_.put(head, slot, value, value);
  }
  void add(int64_t head, int64_t slot, int64_t count, real* weights,
           const GroupSums& into) const override {
    add_pairs(cache_, dim_, head, slot, count, weights, into);
  }

  int64_t dim_;
  PairedCache cache_;
};

// The integers of all positions of all heads, in pieces of `piece` positions; the last piece of a
// head is as narrow as the positions allow, in steps of 32. Zeros at first: what is not written has
// a scale of 0.
class QuantisedPieces {
 public:
  QuantisedPieces(int64_t heads, int64_t positions, const QuantisedLayout& layout, int64_t piece)
      : layout_(layout),
        positions_(padded_positions(positions)),
        piece_(piece),
        bytes_(static_cast<size_t>(heads * positions_ * layout.position_bytes()),
               MemoryScope::current()) {
    std::memset(bytes_.data(), 0, bytes_.bytes());
  }

  static int64_t padded_positions(int64_t positions) {
    return (positions + kKeyColumns - 1) / kKeyColumns * kKeyColumns;
  }
  const QuantisedLayout& layout() const { return layout_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_.bytes()); }
  // The piece that holds a position, and how many positions it has.
  uint8_t* piece(int64_t head, int64_t position) const {
    return static_cast<uint8_t*>(bytes_.data()) +
           (head * positions_ + position / piece_ * piece_) * layout_.position_bytes();
  }
  int64_t width(int64_t position) const {
    return std::min(piece_, positions_ - position / piece_ * piece_);
  }

 private:
  QuantisedLayout layout_;
  int64_t positions_, piece_;
  Block bytes_;
};

int bits_of(CacheNumber number) { return number == CacheNumber::int8 ? 8 : 4; }

class IntegerKeys final : public CachedKeys {
 public:
  IntegerKeys(CacheNumber number, int64_t heads, int64_t slots, int64_t dim)
      : pieces_(heads, slots, {dim, bits_of(number)}, kKeyColumns) {}

 private:
  int64_t bytes() const override { return pieces_.bytes(); }
  int64_t query_reals(int64_t group) const override {
    return quantised_query_reals(group, pieces_.layout().dim);
  }
  void take_queries(const real* q, int64_t group, real* to) const override {
    const int64_t dim = pieces_.layout().dim;
    take_quantised_queries(q, group, dim, decode_factor(dim), to);
  }
  void put(int64_t head, int64_t slot, const real* key) const override {
    put_quantised_key(pieces_.layout(), key, slot % kKeyColumns, pieces_.piece(head, slot));
  }
  void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
             real* logits) const override {
    quantised_scores(pieces_.layout(), group, count, queries, pieces_.piece(head, slot), logits,
                     kDecodeBlock);
  }

  QuantisedPieces pieces_;
};

class IntegerValues final : public CachedValues {
 public:
  static_assert(kValueRows == kDecodeBlock);
  IntegerValues(CacheNumber number, int64_t heads, int64_t slots, int64_t dim)
      : pieces_(heads, slots, {dim, bits_of(number)}, kValueRows) {}

 private:
  int64_t bytes() const override { return pieces_.bytes(); }
  void put(int64_t head, int64_t slot, const real* value) const override {
    put_quantised_value(pieces_.layout(), value, slot % kValueRows, pieces_.width(slot),
                        pieces_.piece(head, slot));
  }
  void add(int64_t head, int64_t slot, int64_t count, real* weights,
           const GroupSums& into) const override {
    add_quantised_values(pieces_.layout(), into.rows, count, pieces_.width(slot), weights,
                         kDecodeBlock, pieces_.piece(head, slot), into.sum, into.rescale);
  }

  QuantisedPieces pieces_;
};

}  // namespace

std::unique_ptr<CachedKeys> cached_keys(CacheNumber number, int64_t heads, int64_t slots,
                                        int64_t dim) {
  if (number == CacheNumber::float32) return std::make_unique<RealKeys>(heads, slots, dim);
  if (number == CacheNumber::bfloat16) return std::make_unique<BFloat16Keys>(heads, slots, dim);
  return std::make_unique<IntegerKeys>(number, heads, slots, dim);
}

std::unique_ptr<CachedValues> cached_values(CacheNumber number, int64_t heads, int64_t slots,
                                            int64_t dim) {
  if (number == CacheNumber::float32) return std::make_unique<RealValues>(heads, slots, dim);
  if (number == CacheNumber::bfloat16) return std::make_unique<BFloat16Values>(heads, slots, dim);
  return std::make_unique<IntegerValues>(number, heads, slots, dim);
}

int64_t cached_key_bytes(CacheNumber number, int64_t dim) {
  if (number == CacheNumber::bfloat16) return pairs_of(dim) * int64_t{sizeof(BFloat16Pair)};
  return cached_value_bytes(number, dim);
}

int64_t cached_value_bytes(CacheNumber number, int64_t dim) {
  if (number == CacheNumber::float32) return dim * int64_t{sizeof(real)};
  if (number == CacheNumber::bfloat16) return dim * int64_t{sizeof(BFloat16)};
  return QuantisedLayout{dim, bits_of(number)}.position_bytes();
}

int64_t cached_key_count(CacheNumber number, int64_t slots) {
  return is_integer(number) ? QuantisedPieces::padded_positions(slots) : slots;
}

int64_t cached_value_count(CacheNumber number, int64_t slots) {
  return number == CacheNumber::bfloat16 ? 2 * pairs_of(slots) : cached_key_count(number, slots);
}

}  // namespace attn
