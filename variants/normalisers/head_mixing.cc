// Mixing of the rows of all heads: products from a strip to a row of all maps, which stays in the
// second-level cache, and back; see head_mixing.h.
#include "variants/normalisers/head_mixing.h"

#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"
#include "core/simd/row_products.h"
#include "core/simd/softmax_rows.h"

namespace attn {
namespace {

// Row r of all maps: some matrices have it apart.
struct Rows {
  real* data;
  int64_t stride;

  static Rows of(const RowStrip& x, int64_t r) { return {x.row(0, r), x.rows * x.stride}; }
  real* map(int64_t h) const { return data + h * stride; }
};

// to_g = Σ_h matrix(g, h)·from_h of n columns; `to` is not `from`.
void mix(int64_t maps, const Rows& from, const Rows& to, Left matrix, int64_t n) {
  product(maps, n, maps, matrix, {from.data, from.stride}, to.data, to.stride);
}

// sums[h, g] += Σ_j x_h[j]·y_g[j]; room [maps, maps]
void add_products(int64_t maps, const Rows& x, const Rows& y, int64_t n, real* room, double* sums) {
  row_products(maps, maps, n, x.data, x.stride, y.data, y.stride, room);
  for (int64_t i = 0; i < maps * maps; ++i) sums[i] += static_cast<double>(room[i]);
}

}  // namespace

HeadMixing::HeadMixing(const Tensor& mixing) : mixing_(mixing) {
  group = mixing.dim(1);
  kept = group;  // weights before they are mixed
  sums = 2 * group * group;
  flops = 4 * static_cast<double>(group * group);
  backward_flops = 3 * flops;
}

// A row of all maps, and a matrix.
int64_t HeadMixing::room_reals(int64_t stride) const {
  return padded_reals(group * stride) + padded_reals(group * group);
}

void HeadMixing::weigh(const RowStrip& x) const {
  const real *const first = mixing_.data(), *const last = first + group * group;
  const Rows weights{x.room, x.stride};
  real* const divided = x.room + padded_reals(group * x.stride);  // W, its rows over their sums
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    if (n == 0) continue;
    const Rows row = Rows::of(x, r);
    mix(group, row, weights, {first, 1, group}, n);
    for (int64_t h = 0; h < group; ++h) {
      const real factor = 1 / exp_from_max_row(n, weights.map(h));
      for (int64_t g = 0; g < group; ++g) divided[h * group + g] = factor * last[h * group + g];
    }
    mix(group, weights, row, {divided, 1, group}, n);
  }
}

// x keeps the logits, `kept_maps` the softmax weights; `spare` gets the mixed ones.
RowStrip HeadMixing::keep(const RowStrip& x, const RowStrip& kept_maps,
                          const RowStrip& spare) const {
  const real *const first = mixing_.data(), *const last = first + group * group;
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    if (n == 0) continue;
    const Rows weights = Rows::of(kept_maps, r);
    mix(group, Rows::of(x, r), weights, {first, 1, group}, n);
    for (int64_t h = 0; h < group; ++h) {
      real* const row = weights.map(h);
      const real factor = 1 / exp_from_max_row(n, row);
      for (int64_t j = 0; j < n; ++j) row[j] *= factor;
    }
    mix(group, weights, Rows::of(spare, r), {last, 1, group}, n);
  }
  return spare;
}

void HeadMixing::gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                          double* learned) const {
  const real *const first = mixing_.data(), *const last = first + group * group;
  const Rows of_weights{x.room, x.stride};
  real* const products = x.room + padded_reals(group * x.stride);
  for (int64_t r = 0; r < x.rows; ++r) {
    const int64_t n = x.counts[r];
    if (n == 0) continue;
    const Rows weights = Rows::of(kept_maps, r), of_mixed = Rows::of(g, r);
    add_products(group, weights, of_mixed, n, products, learned + group * group);
    mix(group, of_mixed, of_weights, {last, group, 1}, n);
    for (int64_t h = 0; h < group; ++h) {
      const real* const weight = weights.map(h);
      real* const grad = of_weights.map(h);
      const real mean = row_dot(weight, grad, n);
      for (int64_t j = 0; j < n; ++j) grad[j] = weight[j] * (grad[j] - mean);
    }
    add_products(group, Rows::of(x, r), of_weights, n, products, learned);
    mix(group, of_weights, of_mixed, {first, group, 1}, n);
  }
}

}  // namespace attn
