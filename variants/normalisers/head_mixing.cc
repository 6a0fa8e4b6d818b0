// Mixing of the rows of all heads, in pieces that stay in the first-level cache; see head_mixing.h.
#include "variants/normalisers/head_mixing.h"

#include <algorithm>

#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kPiece = 256;  // columns that are mixed at a time

// to_g = Σ_h matrix(g, h)·from_h for row r of each map; `to` may be `from`. room [maps, kPiece].
void mix(const RowStrip& from, const RowStrip& to, int64_t r, Left matrix, int64_t n, real* room) {
  const int64_t maps = from.maps;
  for (int64_t c = 0; c < n; c += kPiece) {
    const int64_t width = std::min(kPiece, n - c);
    product(maps, width, maps, matrix, {from.row(0, r) + c, from.rows * from.stride}, room, kPiece);
    for (int64_t g = 0; g < maps; ++g) std::copy_n(room + g * kPiece, width, to.row(g, r) + c);
  }
}

// sums[h, g] += Σ_j x_h[j]·y_g[j]
void add_products(const RowStrip& x, const RowStrip& y, int64_t r, int64_t n, double* sums) {
  for (int64_t h = 0; h < x.maps; ++h)
    for (int64_t g = 0; g < x.maps; ++g)
      sums[h * x.maps + g] += static_cast<double>(row_dot(x.row(h, r), y.row(g, r), n));
}

RowStrip some_maps(const RowStrip& x, int64_t first, int64_t count) {
  RowStrip part = x;
  part.maps = count;
  part.data = x.row(first, 0);
  return part;
}

}  // namespace

HeadMixing::HeadMixing(const Tensor& mixing) : mixing_(mixing) {
  group = mixing.dim(1);
  kept = 2 * group;  // weights before and after they are mixed
  sums = 2 * group * group;
  flops = 4 * static_cast<double>(group * group);
  backward_flops = 3 * flops;
}

int64_t HeadMixing::room_reals(int64_t) const {
  return group * kPiece + padded_reals(group * group);
}

// `weights` may be `logits`. Unless `normalised`, weights are exponentials, and room behind the
// pieces holds W with its rows over their sums.
void HeadMixing::softmax_row(const RowStrip& logits, const RowStrip& weights, int64_t r,
                             bool normalised) const {
  const int64_t n = logits.counts[r];
  const real* const last = mixing_.data() + group * group;
  real* const divided = logits.room + group * kPiece;
  mix(logits, weights, r, {mixing_.data(), 1, group}, n, logits.room);
  for (int64_t h = 0; h < group; ++h) {
    real* const row = weights.row(h, r);
    const real factor = 1 / exp_row(n, row, 1, max_in_row(row, n), row);
    for (int64_t j = 0; normalised && j < n; ++j) row[j] *= factor;
    for (int64_t g = 0; g < group; ++g)
      divided[h * group + g] = last[h * group + g] * (normalised ? 1 : factor);
  }
}

void HeadMixing::weigh(const RowStrip& x) const {
  for (int64_t r = 0; r < x.rows; ++r) {
    if (x.counts[r] == 0) continue;
    softmax_row(x, x, r, false);
    mix(x, x, r, {x.room + group * kPiece, 1, group}, x.counts[r], x.room);
  }
}

// x keeps the logits; of `kept_maps`, the first half are softmax weights, the others mixed ones.
RowStrip HeadMixing::keep(const RowStrip& x, const RowStrip& kept_maps) const {
  const RowStrip weights = some_maps(kept_maps, 0, group),
                 mixed = some_maps(kept_maps, group, group);
  for (int64_t r = 0; r < x.rows; ++r) {
    if (x.counts[r] == 0) continue;
    softmax_row(x, weights, r, true);
    mix(weights, mixed, r, {x.room + group * kPiece, 1, group}, x.counts[r], x.room);
  }
  return mixed;
}

void HeadMixing::gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                          double* learned) const {
  const RowStrip weights = some_maps(kept_maps, 0, group);
  const real *const first = mixing_.data(), *const last = first + group * group;
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    if (n == 0) continue;
    add_products(weights, g, r, n, learned + group * group);
    mix(g, g, r, {last, group, 1}, n, x.room);
    for (int64_t h = 0; h < group; ++h) {
      const real* const weight = weights.row(h, r);
      real* const grad = g.row(h, r);
      const real mean = row_dot(weight, grad, n);
      for (int64_t j = 0; j < n; ++j) grad[j] = weight[j] * (grad[j] - mean);
    }
    add_products(x, g, r, n, learned);
    mix(g, g, r, {first, group, 1}, n, x.room);
  }
}

}  // namespace attn
