// Softmax attention within groups of positions that are a stride apart. The local attention of Long
// Range Arena's code computes such groups instead of blocks. 4·n·block·d FLOPs. Groups are gathered
// for the tiled kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

// A query sees the keys whose position is equal to its own modulo the number of groups. The length
// of a batch entry sets that number: ceil(length / block), and with `extra_group` one more where
// the length is a multiple of `block`. q, k and v [batch, heads, len, dim].
Var grouped_attention(const Var& q, const Var& k, const Var& v, int64_t block,
                      const std::vector<int64_t>& kv_lengths, bool extra_group = true);
Cost grouped_cost(const AttentionShape& shape, int64_t block, bool extra_group = true);

}  // namespace attn
