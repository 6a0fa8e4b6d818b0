// The staircase of a causal mask over blocks is that of RemovedKeys. See compressed_memory.h.
#include "variants/lowrank/compressed_memory.h"

#include <cmath>

namespace attn {
namespace {

SoftmaxProblem problem_of(const Shape& q, int64_t keys, const CompressedMemory& how) {
  SoftmaxProblem p{.batch = q[0],
                   .heads = q[1],
                   .q_len = q[2],
                   .kv_len = keys,
                   .dim = q[3],
                   .value_dim = q[3],
                   .scale = 1 / std::sqrt(static_cast<double>(q[3]))};
  if (how.causal)
    p.removed = {
        .rows = how.stride, .keys = 1, .seen_after = false, .before = 1 + how.stride * how.nulls};
  p.kv_lengths.assign(how.kv_lengths.begin(), how.kv_lengths.end());
  return p;
}

}  // namespace

Var compressed_memory_attention(const Var& q, const Var& k, const Var& v,
                                const CompressedMemory& how) {
  return softmax_op(problem_of(q.shape(), k.dim(2), how), q, k, v);
}

SoftmaxResult compressed_memory_with_log_sum(const Var& q, const Var& k, const Var& v,
                                             const CompressedMemory& how) {
  return softmax_with_log_sum(problem_of(q.shape(), k.dim(2), how), q, k, v);
}

CompressedMemoryWork compressed_memory_work(const AttentionShape& s, const CompressedMemory& how) {
  const int64_t keys = how.nulls + compressed_blocks(s.kv_len, how.stride);
  const SoftmaxWork work =
      softmax_work(problem_of({s.batch, s.heads, s.q_len, s.head_dim}, keys, how));
  const double out = sizeof(real) * static_cast<double>(s.batch * s.heads * s.q_len * s.head_dim);
  return {work.flops, work.backward_flops, out + work.workspace_bytes};
}

}  // namespace attn
