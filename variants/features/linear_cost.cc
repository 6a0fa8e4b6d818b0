// The cost of linear attention, by counting the chunks and strips of its kernels. O(n / chunk).
#include "variants/features/linear_attention.h"
#include "variants/features/linear_chunks.h"

namespace attn {
namespace {

// Multiply-adds of one head.
struct Work {
  double features = 0;  // to project all rows of q and k
  double forward = 0, backward = 0;
};

Work work_of(const LinearProblem& p) {
  const double m = static_cast<double>(p.features), d = static_cast<double>(p.dim);
  const double state = m * (d + 1), rows = static_cast<double>(p.q_len + p.kv_len);
  Work work;
  if (p.map.omega.defined())
    work.features = rows * static_cast<double>(p.map.omega.dim(1) * p.width);
  const double back = p.map.learned ? 2 : 1;  // through the directions, and to them
  if (!p.causal) {  // backward: both through a state, the grad_state of the queries, dv
    work.forward = work.features + rows * state;
    work.backward = (1 + back) * work.features + (rows + static_cast<double>(p.q_len)) * state +
                    static_cast<double>(p.kv_len) * m * d;
    return work;
  }
  work.forward = work.features;
  work.backward = (2 + back) * work.features;  // made again in both sweeps
  for (int64_t c = 0; c < p.key_chunks(); ++c) {
    const Chunk chunk = chunk_of(p, 0, c);
    const double queries = c > 0 ? static_cast<double>(chunk.rows) : 0;
    const double keys = c + 1 < p.key_chunks() ? static_cast<double>(chunk.keys) : 0;
    double pairs = 0, column_pairs = 0;
    for (int64_t r = 0; r < chunk.rows; r += LinearProblem::kChunkStrip) {
      const int64_t count = std::min(LinearProblem::kChunkStrip, chunk.rows - r);
      pairs += static_cast<double>(count * chunk.visible(p, r + count - 1));
    }
    for (int64_t j = 0; j < chunk.keys; j += LinearProblem::kChunkStrip)
      column_pairs += static_cast<double>(std::min(LinearProblem::kChunkStrip, chunk.keys - j) *
                                          (chunk.rows - chunk.first_row(p, j)));
    work.forward += (queries + keys) * state + pairs * (m + d);
    work.backward += 2 * (queries + keys) * state + keys * m * d + pairs * (2 * m + 2 * d) +
                     column_pairs * (m + d);
  }
  return work;
}

}  // namespace

Cost linear_cost(const AttentionShape& shape, const FeatureMap& map, bool gated) {
  LinearProblem p;
  p.batch = shape.batch, p.heads = shape.heads, p.q_len = shape.q_len, p.kv_len = shape.kv_len;
  p.width = p.dim = shape.head_dim, p.features = map.features(p.width), p.map = map;
  p.causal = shape.causal, p.gated = gated, p.scaled = map.has_log_scale() || gated;
  const Work work = work_of(p);
  const double size = sizeof(real), heads = static_cast<double>(p.total_heads());
  const double d = static_cast<double>(p.dim);
  const int64_t pieces = p.pieces(), starts = p.causal ? pieces : 1;
  const int64_t summed = pieces > 1 ? p.summed_parts(pieces) : 0;  // parts of a head
  const int64_t states = pieces > 1 ? (summed + starts) * p.state_reals() : 0;
  Cost cost;
  cost.flops = 2 * heads * work.forward;
  cost.backward_flops = 2 * heads * work.backward;
  cost.bytes = size * heads *
               (2 * d * static_cast<double>(p.q_len + p.kv_len) +
                (gated ? static_cast<double>(p.kv_len) : 0));
  cost.peak_bytes =
      size * heads * (static_cast<double>(p.q_len) * d + static_cast<double>(states)) +
      static_cast<double>(
          workspace_bytes(p.total_heads() * std::max(pieces, summed), linear_workspace(p)));
  cost.state_bytes =
      size * heads * static_cast<double>(p.features * (p.dim + 1) + p.floored() + p.scaled);
  return cost;
}

}  // namespace attn
