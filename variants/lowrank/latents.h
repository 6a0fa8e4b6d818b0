// Learned rows that read a sequence and are read by it. Jaegle et al. 2021, arXiv:2103.03206; Ma et
// al. 2021, arXiv:2106.01540. 4·n·m·d FLOPs each way for m of them.
#pragma once

#include <cstdint>

#include "core/base/params.h"
#include "core/ops/ops.h"
#include "core/ops/ops_heads.h"
#include "variants/api/cost.h"
#include "variants/softmax/softmax.h"

namespace attn {

inline ParamSpec latents_param(int64_t count = 64) {  // of all variants that have them
  return {"latents", count, "learned rows that read the sequence and are read by it", 1, 65536};
}

// rows [heads, m, dim] for each batch entry: [batch, heads, m, dim].
inline Var for_each_entry(const Var& rows, int64_t batch) {
  const int64_t heads = rows.dim(0), m = rows.dim(1), dim = rows.dim(2);
  const Var one = reshape(rows, {1, 1, heads * m, dim});
  return reshape(batch == 1 ? one : repeat_heads(one, batch), {batch, heads, m, dim});
}
inline double entry_bytes(const AttentionShape& s, int64_t m) {  // that it makes
  const int64_t rows = s.batch == 1 ? 0 : s.batch * s.heads * m;
  return static_cast<double>(rows * s.head_dim) * sizeof(real);
}

// The costs of m queries that see all keys, and of all queries that see m keys.
inline Cost reading_cost(AttentionShape s, int64_t m) {
  s.q_len = m;
  return softmax_cost(s);
}
inline Cost answering_cost(AttentionShape s, int64_t m) {
  s.kv_len = m;
  return softmax_cost(s);
}

}  // namespace attn
