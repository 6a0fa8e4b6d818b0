// Attention between sets as a block with its own projections: MAB(Q, K) = O + relu(O·out), O = Q' +
// softmax(Q'K'ᵀ/√width)·V', Q' = Q·q. Lee et al. 2019, arXiv:1810.00825, eqs. 6 and 7. 4·queries·
// keys·width FLOPs, and 2·width² a projected row.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

struct SetBlock {
  int64_t heads = 1;
  Var q, q_bias, k, v, v_bias, out, out_bias;  // [width, width] and [width]; keys have no bias
  Var gain[2], shift[2];  // of the layer norms after each sum, [width]; undefined: none
};

// `projected` [batch, len, width] is Q'; `to` [batch, kv_len, width] is read up to `lengths`.
Var set_attention(const SetBlock& block, const Var& projected, const Var& to,
                  const std::vector<int64_t>& lengths);

}  // namespace attn
