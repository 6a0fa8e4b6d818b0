// Gates of linear attention as scales of keys. With g_t = σ(gate_t), the state is S_t = g_t·S_{t-1}
// + (1 - g_t)·φ(k_t)ᵀv_t: key j weighs (1 - g_j)·Π_{j < t <= i} g_t for query i. Peng et al. 2021
// (arXiv:2103.02143), section 3.2. The factor Π_{t <= i} g_t cancels in the ratio, which leaves
// log_scale_j = log(1 - g_j) - Σ_{t <= j} log g_t. The sums start anew in each chunk, so that they
// keep their digits: M moves by the sum of a chunk at its end.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/simd/row_ops.h"

namespace attn {

// log_scale of `keys` keys relative to the first of them; returns Σ log g_t, which is added to M
// behind them.
inline real gate_scales(const real* gate, int64_t keys, real* log_scale) {
  softplus_row(keys, gate, -1, -1, log_scale);  // log g
  double sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    const real log_keep = log_scale[j];
    sum += static_cast<double>(log_keep);
    log_scale[j] = static_cast<real>(static_cast<double>(log_keep - gate[j]) - sum);
  }
  return static_cast<real>(sum);
}

// Adds the gradient of the gates of one sequence, from that of its log_scale.
inline void add_gate_gradient(const real* gate, const real* grad_log_scale, int64_t keys,
                              real* grad_gate) {
  double behind = 0;  // the gradient of log g_t with its sign turned
  for (int64_t t = keys - 1; t >= 0; --t) {
    const double grad = static_cast<double>(grad_log_scale[t]);
    behind += grad;
    const double keep = 1 / (1 + std::exp(-static_cast<double>(gate[t])));
    grad_gate[t] -= static_cast<real>((1 - keep) * behind + keep * grad);
  }
}

}  // namespace attn
