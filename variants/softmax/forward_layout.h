// The division of the softmax forward into tiles and tasks, and the workspace of a worker. The
// kernel and its cost formula use the same numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/cache.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/simd/bfloat16_product.h"
#include "core/simd/product.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

inline constexpr int64_t kForwardStrip = kTileRows;  // queries: a register tile of the product
inline constexpr int64_t kForwardNarrowStrip = 2 * kForwardStrip;  // where the window is narrow
// Where all queries see all keys of a piece: 48 rows read the packed keys and the values from the
// second-level cache an eighth as often as 6, which is worth 3 % although the logits, 72 KiB in
// float, lie there too. Measured with heads of 64 and 1 MiB of that cache, on AVX2 and AVX-512; 24
// to 96 rows and 256 to 512 keys are within 2 % of it.
inline constexpr int64_t kForwardWideStrip = 48;
inline constexpr int64_t kForwardPiece = 384;  // keys
inline constexpr int64_t kNarrowPiece = 448;   // keys: a strip of logits is 10.5 KiB in float
static_assert(kForwardWideStrip % kForwardNarrowStrip == 0);
static_assert(kForwardPiece % kPanel == 0 && kNarrowPiece % kPanel == 0);

// A task is (head, tile, part). The parts of a tile take different keys; their results are merged.
struct ForwardDivision {
  // Limits of the queries of a tile. The keys are packed once for each tile.
  static constexpr int64_t kMinRows = 128, kMaxRows = 1024;

  QueryTiles tiles;
  int64_t heads, parts;

  explicit ForwardDivision(const SoftmaxProblem& p)
      : tiles(p.q_len, p.pattern.get(),
              std::clamp(p.batch * p.heads * p.q_len / (4 * threads()), kMinRows,
                         most_rows(p, second_level_cache())),
              kForwardNarrowStrip),
        heads(p.batch * p.heads) {
    const int64_t tasks = std::max<int64_t>(1, heads * tiles.count());
    parts = tasks < threads() ? (threads() + tasks - 1) / tasks : 1;
  }
  // The queries and the outputs of a tile of more than kMinRows take at most half of the cache.
  static int64_t most_rows(const SoftmaxProblem& p, int64_t cache_bytes) {
    const int64_t row = (p.dim + p.value_dim) * static_cast<int64_t>(sizeof(real));
    return std::clamp(cache_bytes / 2 / std::max<int64_t>(1, row), kMinRows, kMaxRows);
  }
  int64_t tasks() const { return heads * tiles.count() * parts; }
  // The result of one part of a tile: weighted sums of values [rows, dim], row_max [rows], row_sum
  // [rows].
  int64_t part_reals(int64_t dim) const {
    return padded_reals(std::min(tiles.rows, tiles.q_len) * (dim + 2));
  }
};

// Whether the window is so narrow that a strip takes all its keys at once, from keys packed for its
// whole tile. With pieces, half the strips of a window of 64 would be cut in two, 10 % slower.
inline bool is_narrow(const SoftmaxProblem& p) {
  const int64_t right = p.causal ? 0 : p.right;
  return !p.pattern && p.global == 0 && p.removed.seen_after && p.left >= 0 && right >= 0 &&
         p.left + right + kForwardNarrowStrip + 2 * kPanel <= kNarrowPiece;
}

// The packed keys of `count` positions, in numbers of `real`.
inline int64_t packed_key_reals(const SoftmaxProblem& p, int64_t count) {
  if (p.dtype == Dtype::float32) return packed_reals(count, p.dim);
  return reals_of_pairs(round_up(count, kPanel) * pairs_of(p.dim));
}

// Offsets into a worker's workspace.
struct ForwardLayout {
  int64_t strip;          // queries at a time where all see all keys
  int64_t piece, stride;  // keys packed at once; row stride of the logits
  int64_t rows, query, keys;
  int64_t values, sums;  // packed values of a piece, sums of a tile; bfloat16 alone has them
  int64_t row_max, row_sum, scores, total;

  ForwardLayout(const SoftmaxProblem& p, const QueryTiles& tiles) {
    const bool narrow = is_narrow(p);
    strip = narrow ? kForwardNarrowStrip : kForwardWideStrip;
    rows = std::min(tiles.rows, tiles.q_len);
    piece = narrow ? rows + p.left + (p.causal ? 0 : p.right) : kForwardPiece;
    stride = narrow ? kNarrowPiece : std::min(kForwardPiece, round_up(p.kv_len, kPanel));
    query = 0;
    const bool is_paired = p.dtype == Dtype::bfloat16;
    const int64_t most = std::min(piece, p.kv_len);
    keys = query + padded_reals(is_paired ? reals_of_pairs(rows * pairs_of(p.dim)) : rows * p.dim);
    values = keys + padded_reals(packed_key_reals(p, most));
    sums = values + (is_paired ? padded_reals(reals_of_pairs(pairs_of(most) * p.value_dim)) : 0);
    row_max = sums + (is_paired ? padded_reals(rows * p.value_dim) : 0);
    row_sum = row_max + padded_reals(rows);
    scores = row_sum + padded_reals(rows);
    total = scores + std::min(rows, strip) * stride;
  }
};

}  // namespace attn
