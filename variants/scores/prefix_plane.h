// The matrix of (query, key) pairs under a causal mask and padding: each query sees a prefix of the
// keys. Its division into tiles and strips for kernels that visit all visible pairs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/base/parallel.h"
#include "core/simd/product.h"
#include "core/tensor/tensor.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"

namespace attn {

struct PrefixPlane {
  // Queries that are multiplied with the same keys; wide where all of them see all keys.
  static constexpr int64_t kNarrowStrip = kTileRows, kWideStrip = 2 * kNarrowStrip;
  // Keys of a piece: a strip of weights fits in the first-level cache.
  static constexpr int64_t kPiece = 256;

  int64_t batch = 0, heads = 0, q_len = 0, kv_len = 0, dim = 0, value_dim = 0;
  bool causal = false;
  std::vector<int64_t> kv_lengths = {};
  int64_t tile_rows = kWideStrip;  // queries of a tile; depends on threads()

  PrefixPlane(const Shape& q, const Shape& k, const Shape& v, const Mask& mask)
      : batch(q[0]),
        heads(q[1]),
        q_len(q[2]),
        kv_len(k[2]),
        dim(q[3]),
        value_dim(v[3]),
        causal(mask.causal),
        kv_lengths(mask.kv_lengths) {
    ATTN_CHECK(k == q.with(2, kv_len) && v == k.with(3, value_dim),
               "q {}, k {} and v {} do not fit", q.str(), k.str(), v.str());
    cut();
  }
  explicit PrefixPlane(const AttentionShape& s)
      : batch(s.batch),
        heads(s.heads),
        q_len(s.q_len),
        kv_len(s.kv_len),
        dim(s.head_dim),
        value_dim(s.head_dim),
        causal(s.causal) {
    cut();
  }

  int64_t all_heads() const { return batch * heads; }
  // Valid keys of head h, counted over all batch entries.
  int64_t length(int64_t h) const {
    return kv_lengths.empty() ? kv_len : kv_lengths[static_cast<size_t>(h / heads)];
  }
  // Visible keys of query i.
  int64_t seen(int64_t h, int64_t i) const {
    return causal ? std::clamp<int64_t>(i + kv_len - q_len + 1, 0, length(h)) : length(h);
  }

  int64_t tiles() const { return q_len == 0 ? 0 : (q_len + tile_rows - 1) / tile_rows; }
  // First query of a tile. Tiles are numbered alternately from both ends, so that equal shares of a
  // causal head take the same time.
  int64_t tile_begin(int64_t tile) const {
    return (tile % 2 ? tiles() - 1 - tile / 2 : tile / 2) * tile_rows;
  }

  // The number of pairs that a kernel multiplies: all queries of a strip with the visible keys of
  // any of them.
  double pairs(int64_t strip) const {
    double sum = 0;
    const int64_t different = kv_lengths.empty() ? 1 : all_heads();
    for (int64_t h = 0; h < different; ++h)
      for (int64_t i = 0; i < q_len; i += strip) {
        const int64_t last = std::min(i + strip, q_len);
        sum += static_cast<double>((last - i) * seen(h, last - 1));
      }
    return sum * static_cast<double>(all_heads() / different);
  }

  // Sets the entries of x [rows, cols] to `value` where query i + r of head h does not see key
  // first + c.
  void mask_beyond_prefix(int64_t h, int64_t i, int64_t rows, int64_t first, int64_t cols, real* x,
                          int64_t stride, real value) const {
    const Mark mark(Part::masks);
    for (int64_t r = 0; r < rows; ++r)
      std::fill(x + r * stride + std::clamp<int64_t>(seen(h, i + r) - first, 0, cols),
                x + r * stride + cols, value);
  }

 private:
  // Whole wide strips; enough of them to pay for packing the keys.
  void cut() {
    const auto whole = [](int64_t rows) {
      return (rows + kWideStrip - 1) / kWideStrip * kWideStrip;
    };
    tile_rows = whole(std::clamp<int64_t>(all_heads() * q_len / (4 * threads()), 96, 480));
    tile_rows = std::max(kWideStrip, std::min(tile_rows, whole(q_len)));
  }
};

}  // namespace attn
