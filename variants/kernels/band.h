// Which keys a query sees, and how the (query, key) plane is cut into patches for tiled attention.
// Causal, window and padding masks all leave each query an interval of keys that only moves right
// from query to query.
#pragma once

#include <algorithm>
#include <cstdint>

namespace attn {

struct Band {
  int64_t q_len = 0;
  int64_t kv_len = 0;
  int64_t length = 0;  // keys from here on are padding: never read
  int64_t left = -1;   // keys seen before the query's own position; -1: all
  int64_t right = -1;  // and after it; 0 is causal; -1: all

  // Query i sits at key position i + kv_len - q_len: the two sequences are aligned at the end.
  int64_t begin(int64_t i) const {
    return left < 0 ? 0 : std::clamp<int64_t>(i + kv_len - q_len - left, 0, length);
  }
  int64_t end(int64_t i) const {
    return right < 0 ? length : std::clamp<int64_t>(i + kv_len - q_len + right + 1, 0, length);
  }
};

// Tile sizes. 128 x 512 scores (256 KiB in float) stay in a second-level cache; a patch that a mask
// cuts through is split into strips of rows, each with its own span of keys, so that hidden pairs
// are hardly ever multiplied.
struct Tiling {
  int64_t rows = 128;
  int64_t cols = 512;
  int64_t strip = 32;

  explicit Tiling(const Band& band) {
    const bool windowed = band.left >= 0 && band.right >= 0;
    // A narrow window wastes strip - 1 keys a query: smaller strips for smaller windows.
    if (windowed && band.left + band.right < 1024) strip = 16;
    if (windowed && band.left + band.right < 256) rows = 32;
  }
  int64_t row_tiles(const Band& band) const { return (band.q_len + rows - 1) / rows; }
  int64_t col_tiles(const Band& band) const { return (band.length + cols - 1) / cols; }
};

struct Patch {
  int64_t row = 0, rows = 0;  // queries
  int64_t col = 0, cols = 0;  // keys
  bool edge = false;          // some of its pairs are hidden
};

// Calls visit(patch) for what is visible of one row tile and one column tile, top down.
template <class Visit>
void visit_patches(const Band& band, const Tiling& tiling, int64_t row_tile, int64_t col_tile,
                   Visit&& visit) {
  const int64_t i0 = row_tile * tiling.rows, i1 = std::min(band.q_len, i0 + tiling.rows);
  const int64_t j0 = col_tile * tiling.cols, j1 = std::min(band.length, j0 + tiling.cols);
  if (band.begin(i0) >= j1 || band.end(i1 - 1) <= j0) return;
  if (band.begin(i1 - 1) <= j0 && band.end(i0) >= j1) {
    visit(Patch{i0, i1 - i0, j0, j1 - j0, false});
    return;
  }
  for (int64_t r0 = i0; r0 < i1; r0 += tiling.strip) {
    const int64_t r1 = std::min(i1, r0 + tiling.strip);
    const int64_t c0 = std::max(j0, band.begin(r0)), c1 = std::min(j1, band.end(r1 - 1));
    if (c0 < c1) visit(Patch{r0, r1 - r0, c0, c1 - c0, true});
  }
}

// The pairs that will be multiplied, hidden ones at the edges of patches included.
inline double executed_pairs(const Band& band) {
  const Tiling tiling(band);
  double pairs = 0;
  for (int64_t i = 0; i < tiling.row_tiles(band); ++i)
    for (int64_t j = 0; j < tiling.col_tiles(band); ++j)
      visit_patches(band, tiling, i, j,
                    [&](const Patch& p) { pairs += static_cast<double>(p.rows * p.cols); });
  return pairs;
}

}  // namespace attn
