// The division of the softmax backward into tiles of queries and blocks of keys, and the workspace
// of a worker. Private to the engine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/memory.h"
#include "core/simd/product.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

inline constexpr int64_t kBackwardTile = 96;  // queries
inline constexpr int64_t kBackwardBlock =
    256;  // keys at most; logits and gradients of a tile are 192 KiB in float
inline constexpr int64_t kBackwardStrip = 24;  // queries of a tile that a mask cuts through

struct ScoreTile {
  Span queries, keys;
  bool whole = true;  // every pair is visible
};

// Whether late queries see more keys than early ones, and late keys are seen by fewer queries.
inline bool is_triangular(const SoftmaxProblem& p) { return p.causal && p.left < 0; }

// Whether the keys are so few that parts of a head would leave too few to each. The parts then take
// queries alone, and sum the gradients of all keys and values apart.
inline bool has_few_keys(const SoftmaxProblem& p) {
  return p.kv_len <= kBackwardBlock && 2 * p.kv_len <= p.q_len;
}

// Keys of a block: few enough that each part of a head gets some; of a triangle, an early and a
// late one.
inline int64_t block_of(const SoftmaxProblem& p, int64_t parts) {
  if (parts == 1) return kBackwardBlock;
  if (has_few_keys(p)) return kBackwardBlock;
  const int64_t blocks = is_triangular(p) ? 2 * parts : parts;
  return std::clamp(round_up((p.kv_len + blocks - 1) / blocks, kPanel), kPanel, kBackwardBlock);
}

// Offsets into a worker's workspace; rows of weights and gradients are `stride` apart.
struct BackwardLayout {
  int64_t stride, keys, values, query, dots, weights, grad_logits, total;

  BackwardLayout(const SoftmaxProblem& p, const QueryTiles& tiles, int64_t block) {
    const int64_t rows = std::min(tiles.rows, p.q_len), cols = std::min(block, p.kv_len);
    stride = round_up(cols, kPanel);
    keys = 0;
    values = keys + padded_reals(packed_reals(cols, p.dim));
    query = values + padded_reals(packed_reals(cols, p.value_dim));
    dots = query + padded_reals(rows * p.dim);
    weights = dots + padded_reals(rows);
    grad_logits = weights + rows * stride;
    total = grad_logits + rows * stride;
  }
};

}  // namespace attn
