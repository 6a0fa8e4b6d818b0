// Attention to rows packed from the keys and values so far: causal Luna. Ma et al. 2021,
// arXiv:2106.01540, section 3, and the authors' code. With ω_j = softplus(P·k_j) of each packed
// row, and t the number of keys that query i sees:
//   a_i = softmax((1/t)·Σ_{j ≤ i} (q_i·k_j)·ω_j),  o_i = (1/t)·Σ_{j ≤ i} (a_i·ω_j)·v_j
// Two calls of linear attention, 10·n·latents·d FLOPs and those inside its tiles; memory
// 3·n·latents. Weights are positive, and do not sum to one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"

namespace attn {

// q, k, v and the output [batch, heads, len, dim], rows P [heads, latents, dim]. Logits are divided
// by √dim, and softplus is that to the base 2, log2(1 + 2^x), which is 1 at 0.
Var causal_packing(const Var& q, const Var& k, const Var& v, const Var& rows,
                   const std::vector<int64_t>& lengths);
Cost causal_packing_cost(const AttentionShape& shape, int64_t latents);
// Its state is both sums, 2·latents·dim numbers a head. Null where query heads share keys.
std::unique_ptr<Decoder> causal_packing_decoder(const Shape& position, int64_t capacity,
                                                const Var& rows);

}  // namespace attn
