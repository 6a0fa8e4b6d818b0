// Keys alone and values alone in each number type: the parts of typed_cache.h. Queries, logits,
// weights and sums are in `real`. Private to the engine.
#pragma once

#include <cstring>
#include <memory>

#include "core/simd/quantised_product.h"
#include "variants/api/cache_type.h"
#include "variants/softmax/decode_cache.h"

namespace attn {

class CachedKeys {
 public:
  virtual ~CachedKeys() = default;
  // The workspace of a group's queries, and queries [group, dim] put there.
  virtual int64_t query_reals(int64_t group) const = 0;
  virtual void take_queries(const real* q, int64_t group, real* to) const = 0;
  virtual void put(int64_t head, int64_t slot, const real* key) const = 0;
  // As RealCache::score().
  virtual void score(int64_t head, int64_t slot, int64_t count, int64_t group, const real* queries,
                     real* logits) const = 0;
  virtual int64_t bytes() const = 0;  // held
};

class CachedValues {
 public:
  virtual ~CachedValues() = default;
  virtual void put(int64_t head, int64_t slot, const real* value) const = 0;
  // into.sum = into.rescale · into.sum + weights · values; rows of weights are kDecodeBlock apart,
  // and may be overwritten.
  virtual void add(int64_t head, int64_t slot, int64_t count, real* weights,
                   const GroupSums& into) const = 0;
  virtual int64_t bytes() const = 0;
};

std::unique_ptr<CachedKeys> cached_keys(CacheNumber number, int64_t heads, int64_t slots,
                                        int64_t dim);
std::unique_ptr<CachedValues> cached_values(CacheNumber number, int64_t heads, int64_t slots,
                                            int64_t dim);
// Bytes of a key and of a value: bfloat16 pairs the numbers of a key and the positions of values.
int64_t cached_key_bytes(CacheNumber number, int64_t dim);
int64_t cached_value_bytes(CacheNumber number, int64_t dim);
// How many are held for `slots` positions.
int64_t cached_key_count(CacheNumber number, int64_t slots);
int64_t cached_value_count(CacheNumber number, int64_t slots);

}  // namespace attn
