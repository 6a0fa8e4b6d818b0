// The staircase of a causal mask over blocks is that of RemovedKeys for queries that stand
// stride·nulls + 1 rows later: so many rows of zeros are put before them. See compressed_memory.h.
#include "variants/lowrank/compressed_memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/ops.h"

namespace attn {
namespace {

int64_t rows_before(const CompressedMemory& how) {
  return how.causal ? 1 + how.stride * how.nulls : 0;
}

SoftmaxProblem problem_of(const Shape& q, int64_t keys, const CompressedMemory& how) {
  SoftmaxProblem p{.batch = q[0],
                   .heads = q[1],
                   .q_len = q[2],
                   .kv_len = keys,
                   .dim = q[3],
                   .value_dim = q[3],
                   .scale = 1 / std::sqrt(static_cast<double>(q[3]))};
  if (how.causal) p.removed = {.rows = how.stride, .keys = 1, .seen_after = false};
  p.kv_lengths.assign(how.kv_lengths.begin(), how.kv_lengths.end());
  return p;
}

Var attend(const Var& q, const Var& k, const Var& v, const CompressedMemory& how) {
  return softmax_op(problem_of(q.shape(), k.dim(2), how), q, k, v);
}

}  // namespace

Var compressed_memory_attention(const Var& q, const Var& k, const Var& v,
                                const CompressedMemory& how) {
  const int64_t before = rows_before(how), rows = before + q.dim(2);
  if (before == 0) return attend(q, k, v, how);
  const auto shifted = [&] {
    const std::array both = {Var(Tensor::zeros(q.shape().with(2, before))), q};
    return concat(both, 2);
  };
  const Var all = attend(shifted(), k, v, how);  // the shifted queries are freed
  return slice(all, 2, before, rows);
}

CompressedMemoryWork compressed_memory_work(const AttentionShape& s, const CompressedMemory& how) {
  const int64_t rows = s.q_len + rows_before(how),
                keys = how.nulls + compressed_blocks(s.kv_len, how.stride);
  const SoftmaxWork work =
      softmax_work(problem_of({s.batch, s.heads, rows, s.head_dim}, keys, how));
  const double width = sizeof(real) * static_cast<double>(s.batch * s.heads * s.head_dim),
               out = width * static_cast<double>(s.q_len), all = width * static_cast<double>(rows);
  return {
      work.flops, work.backward_flops,
      how.causal ? all + std::max(all + work.workspace_bytes, out) : out + work.workspace_bytes};
}

}  // namespace attn
