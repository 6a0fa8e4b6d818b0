// The mask as numbers; see visible_pairs.h.
#include "variants/kernels/visible_pairs.h"

#include <algorithm>

#include "variants/kernels/band.h"

namespace attn {

Tensor visible_pairs(const Mask& mask, const Shape& q, const Shape& k) {
  const int64_t heads = q[1], q_len = q[2], kv_len = k[2];
  const Tensor pairs = Tensor::zeros({q[0], heads, q_len, kv_len});
  for (int64_t row = 0; row < q[0] * heads * q_len; row++) {
    const int64_t length = mask.kv_lengths.empty()
                               ? kv_len
                               : mask.kv_lengths[static_cast<size_t>(row / (heads * q_len))];
    const Band band{q_len, kv_len, length, -1, mask.causal ? int64_t{0} : int64_t{-1}};
    std::fill_n(pairs.data() + row * kv_len, band.end(row % q_len), real(1));
  }
  return pairs;
}

}  // namespace attn
