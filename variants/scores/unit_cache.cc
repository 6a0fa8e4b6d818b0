// One row of weights at a time; see unit_cache.h.
#include "variants/scores/unit_cache.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

// `weights` [count] holds the products of a query with the keys.
void weigh(const Tensor& weights, int64_t base, UnitScore score) {
  if (score == UnitScore::softmax) {
    const auto scale = static_cast<real>(1 / std::sqrt(static_cast<double>(base)));
    for (real& weight : weights.values()) weight *= scale;
    return softmax_rows(1, weights.size(), weights.data(), weights.data());
  }
  const real share = real(1) / static_cast<real>(weights.size());
  for (real& weight : weights.values())
    weight = weight > 0 ? weight * share * (weight * share) : real(0);
}

}  // namespace

UnitCache::UnitCache(int64_t batch, int64_t capacity, int64_t base, int64_t units)
    : keys_({batch, capacity, base}), values_({batch, capacity, units}) {}

int64_t UnitCache::bytes() const {
  return static_cast<int64_t>(sizeof(real)) * (keys_.size() + values_.size());
}

void UnitCache::put(int64_t at, const Tensor& k, const Tensor& v) const {
  const auto rows = [&](const Tensor& from, const Tensor& to) {
    const int64_t width = to.dim(2), len = from.size() / (to.dim(0) * width);
    for (int64_t r = 0; r < to.dim(0) * len; ++r)
      std::copy_n(from.data() + r * width, width,
                  to.data() + (r / len * capacity() + (at + r % len) % capacity()) * width);
  };
  rows(k, keys_), rows(v, values_);
}

Tensor UnitCache::mixed(const Tensor& q, int64_t count, UnitScore score) const {
  const int64_t base = keys_.dim(2), units = values_.dim(2);
  const Tensor weights({count}), to({keys_.dim(0), 1, units});
  for (int64_t b = 0; b < to.dim(0); ++b) {
    for (int64_t j = 0; j < count; ++j)
      weights[j] = row_dot(q.data() + b * base, keys_.data() + (b * capacity() + j) * base, base);
    weigh(weights, base, score);
    for (int64_t c = 0; c < units; c += kPanel)
      product(1, std::min(kPanel, units - c), count, {weights.data(), count},
              {values_.data() + b * capacity() * units + c, units}, to.data() + b * units + c,
              units);
  }
  Tally done;
  done.multiply_adds(multiply_adds(count));
  done.moved<real>(moved(count));
  return to;
}

int64_t UnitCache::multiply_adds(int64_t count) const {
  return keys_.dim(0) * count * (keys_.dim(2) + values_.dim(2));
}
int64_t UnitCache::moved(int64_t count) const { return multiply_adds(count + 1); }

}  // namespace attn
