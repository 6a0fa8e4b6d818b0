// Masks of references; see reference.h.
#include "variants/api/reference.h"

#include <algorithm>

#include "variants/reference/cached.h"

namespace attn {
namespace {

oracle::Array as_cached(const oracle::Array& x, CacheNumber number, CacheType type) {
  const int64_t recent = keeps_recent(type) ? kRecentPositions : 0;
  switch (number) {
    case CacheNumber::float32:
      return x;
    case CacheNumber::bfloat16:
      return oracle::cached(x, recent, oracle::cached_in_bfloat16);
    case CacheNumber::int8:
      return oracle::cached(x, recent, oracle::cached_in_integers<127>);
    case CacheNumber::int4:
      return oracle::cached(x, recent, oracle::cached_in_integers<7>);
  }
  return x;
}

}  // namespace

oracle::Array ReferenceInputs::cached_keys(const oracle::Array& keys) const {
  return as_cached(keys, keys_of(cache), cache);
}

oracle::Array ReferenceInputs::cached_values() const {
  return as_cached(v, values_of(cache), cache);
}

oracle::Visibility ReferenceInputs::visible() const {
  oracle::Visibility seen{.causal = mask.causal, .lengths = mask.kv_lengths, .rows = rows};
  if (mask.edges)
    seen.allows = [edges = mask.edges, queries = q.len](int64_t b, int64_t, int64_t i, int64_t j) {
      const auto row = edges->first.begin() + b * queries + i;
      return std::binary_search(edges->keys.begin() + row[0], edges->keys.begin() + row[1], j);
    };
  return seen;
}

oracle::Visibility ReferenceInputs::visible(std::function<bool(int64_t i, int64_t j)> sees) const {
  oracle::Visibility seen = visible();
  seen.allows = [given = std::move(seen.allows), sees = std::move(sees), ahead = k.len - q.len](
                    int64_t b, int64_t h, int64_t i, int64_t j) {
    return sees(i + ahead, j) && (!given || given(b, h, i, j));
  };
  return seen;
}

oracle::Array softmax_where(const ReferenceInputs& x,
                            std::function<bool(int64_t i, int64_t j)> sees) {
  return oracle::softmax_attention(x.q, x.cached_keys(x.k), x.cached_values(),
                                   x.visible(std::move(sees)));
}

}  // namespace attn
