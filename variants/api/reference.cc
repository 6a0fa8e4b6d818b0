// Masks of references; see reference.h.
#include "variants/api/reference.h"

#include <algorithm>

#include "variants/reference/cached.h"

namespace attn {
namespace {

oracle::Array as_cached(oracle::Array x, CacheNumber number, int64_t recent) {
  switch (number) {
    case CacheNumber::float32:
      return x;
    case CacheNumber::bfloat16:
      return oracle::cached(std::move(x), recent, oracle::cached_in_bfloat16);
    case CacheNumber::int8:
      return oracle::cached(std::move(x), recent, oracle::cached_in_integers<127>);
    case CacheNumber::int4:
      return oracle::cached(std::move(x), recent, oracle::cached_in_integers<7>);
  }
  return x;
}

}  // namespace

void ReferenceInputs::round_as_cached(CacheType type) {
  const int64_t recent = keeps_recent(type) ? kRecentPositions : 0;
  cache = type;
  k = as_cached(std::move(k), keys_of(type), recent);
  v = as_cached(std::move(v), values_of(type), recent);
  if (keys_of(type) == CacheNumber::bfloat16) q = as_cached(std::move(q), CacheNumber::bfloat16, 0);
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
  return oracle::softmax_attention(x.q, x.k, x.v, x.visible(std::move(sees)));
}

}  // namespace attn
