// Each forward pass gives head_dim columns of the matrix; see implied_weights.h.
#include "harness/model/implied_weights.h"

#include <algorithm>

namespace attn {

Tensor implied_weights(const Attention& attention, const Tensor& q, const Tensor& k,
                       const Mask& mask, std::span<const Var> gates) {
  const NoGrad no_grad;
  const int64_t matrices = q.dim(0) * q.dim(1), q_len = q.dim(2), kv_len = k.dim(2), dim = k.dim(3);
  Tensor weights({q.dim(0), q.dim(1), q_len, kv_len});
  for (int64_t first = 0; first < kv_len; first += dim) {
    const int64_t columns = std::min(dim, kv_len - first);
    const Tensor v = Tensor::zeros(k.shape());
    for (int64_t m = 0; m < matrices; m++)
      for (int64_t c = 0; c < columns; c++) v[(m * kv_len + first + c) * dim + c] = 1;
    const Tensor out = attention.forward(Var(q), Var(k), Var(v), mask, gates).value();
    for (int64_t row = 0; row < matrices * q_len; row++)
      std::copy_n(out.data() + row * dim, columns, weights.data() + row * kv_len + first);
  }
  return weights;
}

}  // namespace attn
