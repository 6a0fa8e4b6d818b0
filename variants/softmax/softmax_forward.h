// How the forward of tiled softmax attention is cut into tiles and parts for threads, and what a
// worker holds; its kernel and its cost follow from the same numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

inline constexpr int64_t kStrip = kTileRows;  // queries: what the product keeps in registers
inline constexpr int64_t kWideStrip = 12;  // where no mask cuts through: half the fetches of keys
inline constexpr int64_t kPiece = 256;     // keys: a wide strip of logits is 12 KiB in float
inline constexpr int64_t kNarrow = 448;    // keys: a strip of logits is 10.5 KiB in float

// How the work is shared: tasks are (head, tile, part), where the parts of a tile take different
// keys and are merged.
struct ForwardDivision {
  // Queries of a tile: packing its keys costs 5 to 1 %.
  static constexpr int64_t kLeast = 96, kMost = 512;

  QueryTiles tiles;
  int64_t heads, parts;

  ForwardDivision(int64_t q_len, const BlockPattern* pattern, int64_t all_heads)
      : tiles(q_len, pattern, std::clamp(all_heads * q_len / (4 * threads()), kLeast, kMost),
              kWideStrip),
        heads(all_heads) {
    const int64_t tasks = std::max<int64_t>(1, heads * tiles.count());
    parts = tasks < threads() ? (threads() + tasks - 1) / tasks : 1;
  }
  int64_t tasks() const { return heads * tiles.count() * parts; }
  // What a part of a tile leaves to be merged: sums of values [rows, dim],
  // largest logits [rows], sums of weights [rows].
  int64_t part_reals(int64_t dim) const {
    return padded_reals(std::min(tiles.rows, tiles.q_len) * (dim + 2));
  }
};

// Whether a strip takes all keys that it sees at once, from keys packed for its whole tile. A
// border of pieces would cut half the strips of a window of 64 in two, and cost a tenth.
inline bool is_narrow(const SoftmaxProblem& p) {
  const int64_t right = p.causal ? 0 : p.right;
  return !p.pattern && p.global == 0 && p.removed.seen_after && p.left >= 0 && right >= 0 &&
         p.left + right + kWideStrip + 2 * kPanel <= kNarrow;
}

// Offsets into a worker's workspace.
struct ForwardLayout {
  int64_t piece, stride;  // keys packed at once; logits of a row
  int64_t rows, query, keys, row_max, row_sum, scores, total;

  ForwardLayout(const SoftmaxProblem& p, const QueryTiles& tiles) {
    const bool narrow = is_narrow(p);
    rows = std::min(tiles.rows, tiles.q_len);
    piece = narrow ? rows + p.left + (p.causal ? 0 : p.right) : kPiece;
    stride = narrow ? kNarrow : kPiece;
    query = 0;
    keys = query + padded_reals(rows * p.dim);
    row_max = keys + padded_reals(packed_reals(std::min(piece, p.kv_len), p.dim));
    row_sum = row_max + padded_reals(rows);
    scores = row_sum + padded_reals(rows);
    total = scores + kWideStrip * stride;
  }
};

}  // namespace attn
