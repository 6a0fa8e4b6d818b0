// What forward and backward of path_attention() share. Internal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "core/base/real.h"
#include "core/simd/softmax_rows.h"
#include "core/tensor/tensor.h"

namespace attn {

struct PathProblem {
  int64_t heads = 0, chunks = 0, chunk = 0, dim = 0;
  int64_t len = 0;                    // positions; the last chunk is filled up with others
  std::vector<int64_t> lengths = {};  // keys of each batch entry; empty: len

  int64_t rows_reals() const { return chunk * dim; }
  int64_t head_reals() const { return chunks * rows_reals(); }
  // Keys of chunk b that are not padding.
  int64_t keys(int64_t head, int64_t b) const {
    const auto batch = static_cast<int64_t>(lengths.size());
    const int64_t all = batch == 0 ? len : lengths[static_cast<size_t>(head * batch / heads)];
    return std::clamp<int64_t>(all - b * chunk, 0, chunk);
  }
};

struct PathSaved {
  Tensor q, k, v, maps, near, out;
  Tensor log_sum;  // [heads, chunks·chunk], in units of log2; +inf for a query without a key
};

inline constexpr real kLog2E = static_cast<real>(std::numbers::log2e);

// Hides logits [chunk, chunk] of keys from number `keys` on, and with `diagonal` those after the
// query.
inline void hide_keys(int64_t chunk, int64_t keys, bool diagonal, real* logits) {
  for (int64_t i = 0; i < chunk; ++i) {
    const int64_t visible = std::min(keys, diagonal ? i + 1 : chunk);
    std::fill(logits + i * chunk + visible, logits + (i + 1) * chunk, -kInfinity);
  }
}

// Of one head.
double path_backward_flops(const PathProblem& p);
void path_backward(const PathProblem& p, const PathSaved& s, const Tensor& grad_out,
                   std::span<Tensor> grads);

}  // namespace attn
