// Attention with relu in place of softmax, tiled: O_i = Σ_j relu(q_i·k_j/√d)·v_j / (visible keys of
// query i), Wortsman et al. 2023, arXiv:2309.08586, section 3, or squared: Σ_j relu(q_i·k_j /
// (visible keys))²·v_j, Hua et al. 2022, arXiv:2202.10447, eq. 3. 4·n²·d FLOPs, never an n×n
// buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/mask.h"

namespace attn {

// q [batch, heads, q_len, dim], k [batch, heads, kv_len, dim], v [batch, heads, kv_len, value_dim]
// -> [batch, heads, q_len, value_dim]. The mask must have no edges.
enum class ReluPower { one, squared };
Var relu_attention(const Var& q, const Var& k, const Var& v, const Mask& mask,
                   ReluPower power = ReluPower::one);

// One forward without gradients, of values as wide as keys or, where given, `value_dim`. Counts the
// pairs of whole strips of 6 queries, with `kv_lengths` as in Mask.
Cost relu_cost(const AttentionShape& shape, int64_t value_dim = 0,
               const std::vector<int64_t>& kv_lengths = {});

// Decoding from a KV cache: a step costs 4·d FLOPs and reads 2·d numbers for each position.
std::unique_ptr<Decoder> relu_decoder(const Shape& position, int64_t capacity);

}  // namespace attn
