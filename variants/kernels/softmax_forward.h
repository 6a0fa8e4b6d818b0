// How the forward of tiled softmax attention is cut into tiles and parts for threads, and what a
// worker holds; its kernel and its cost follow from the same numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/kernels/product.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "variants/kernels/band.h"

namespace attn {

inline constexpr int64_t kStrip = kTileRows;  // queries: what the product keeps in registers
inline constexpr int64_t kWideStrip = 12;  // where no mask cuts through: half the fetches of keys
inline constexpr int64_t kPiece = 256;     // keys: a wide strip of logits is 12 KiB in float

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
  // What a part of a tile leaves to be merged: [rows·dim sums, rows tops, rows masses].
  int64_t part_reals(int64_t dim) const {
    return padded_reals(std::min(tiles.rows, tiles.q_len) * (dim + 2));
  }
};

// Offsets into a worker's workspace.
struct ForwardLayout {
  int64_t rows, query, keys, top, mass, scores, total;

  ForwardLayout(const QueryTiles& tiles, int64_t kv_len, int64_t dim) {
    rows = std::min(tiles.rows, tiles.q_len);
    query = 0;
    keys = query + padded_reals(rows * dim);
    top = keys + padded_reals(packed_reals(std::min(kPiece, kv_len), dim));
    mass = top + padded_reals(rows);
    scores = mass + padded_reals(rows);
    total = scores + kWideStrip * kPiece;
  }
};

}  // namespace attn
