// How far the weights of features are from those of softmax attention: the loss that feature maps
// are fitted with before training. Zhang et al. 2024, arXiv:2402.04347, section 4. 2·n²·(d + 3·m)
// FLOPs for m features, a row's logarithm and exponential for each pair of positions; memory n·m,
// and n·(d + m + 128) a thread: no n×n matrix.
#pragma once

#include "core/autograd/var.h"
#include "variants/api/mask.h"

namespace attn {

// The mean over rows i that see a key of -Σ_j p_ij·log(s_ij / Σ_j s_ij), where p are the weights of
// softmax attention with logits q·k/√d and s_ij = φ(q_i)·φ(k_j), but at least 1e-12. Features phi_q
// [batch, heads, q_len, features] and phi_k [batch, heads, kv_len, features] get gradients. Rows
// are left out as Mimicking::mimicry_loss() says.
Var softmax_mimicry(const Tensor& q, const Tensor& k, const Var& phi_q, const Var& phi_k,
                    const Mask& mask);

}  // namespace attn
