// Softmax attention within groups of positions that lie a stride apart: what Long Range Arena's
// local attention computes in place of blocks. 4·n·block·d FLOPs; groups are gathered, so that they
// use the tiled kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

// Queries and keys at equal positions modulo the number of groups of at most `block` keys that the
// length of their batch entry needs; `spare`: and one more where it is a multiple of `block`. q, k
// and v [batch, heads, len, dim].
Var grouped_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                      const std::vector<int64_t>& kv_lengths, bool spare = true);
Cost grouped_cost(const AttentionShape& shape, int64_t block, bool spare = true);

}  // namespace attn
