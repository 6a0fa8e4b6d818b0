// The mask as numbers; see visible_pairs.h.
#include "variants/api/visible_pairs.h"

#include <algorithm>
#include <span>

namespace attn {
namespace {

std::span<const int32_t> visible_keys_of(const Mask& mask, int64_t query) {
  if (!mask.edges) return {};
  const auto at = mask.edges->first.begin() + query;
  return std::span(mask.edges->keys)
      .subspan(static_cast<size_t>(at[0]), static_cast<size_t>(at[1] - at[0]));
}

}  // namespace

Tensor visible_pairs(const Mask& mask, const Shape& q, const Shape& k) {
  const int64_t heads = q[1], q_len = q[2], kv_len = k[2];
  const Tensor pairs = Tensor::zeros({q[0], heads, q_len, kv_len});
  for (int64_t row = 0; row < q[0] * heads * q_len; row++) {
    const int64_t length = mask.kv_lengths.empty()
                               ? kv_len
                               : mask.kv_lengths[static_cast<size_t>(row / (heads * q_len))];
    const int64_t last = row % q_len + kv_len - q_len;  // that a causal query sees
    const int64_t end = mask.causal ? std::clamp<int64_t>(last + 1, 0, length) : length;
    real* const seen = pairs.data() + row * kv_len;
    if (!mask.edges) std::fill_n(seen, end, real(1));
    for (const int32_t key : visible_keys_of(mask, row / (heads * q_len) * q_len + row % q_len))
      if (key < end) seen[key] = 1;
  }
  return pairs;
}

}  // namespace attn
