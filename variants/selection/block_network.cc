// See block_network.h. Blocks overlap: each stride of rows is multiplied once with each part of U
// that it meets, and the products are added block by block.
#include "variants/selection/block_network.h"

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {

Var network_rows(const CompressedBlocks& of, const BlockNetwork& by, const Var& x) {
  const int64_t batch = x.dim(0), heads = x.dim(1), n = x.dim(2), d = x.dim(3);
  const int64_t count = of.ended(n), parts = of.block / of.stride, width = of.stride * d;
  if (count == 0) return Var(Tensor::zeros({batch, heads, 1, d}));
  const int64_t strides = count - 1 + parts;
  const Var used = strides * of.stride == n ? x : slice(x, 2, 0, strides * of.stride);
  const Var flat = reshape(used, {batch, heads, strides, width});
  Var hidden;  // [batch, heads, count, hidden]
  for (int64_t part = 0; part < parts; ++part) {
    Var product = matmul(flat, slice(by.up, 0, part * width, (part + 1) * width));
    if (parts > 1) product = slice(product, 2, part, part + count);
    hidden = part > 0 ? add(hidden, product) : product;
  }
  const Var bias = matmul(reshape(by.position, {1, of.block * d}), by.up);
  return matmul(gelu(add(hidden, reshape(bias, {by.hidden()}))), by.down);
}

void network_row(const BlockNetwork& by, const real* rows, real* work, real* to) {
  const int64_t in = by.up.dim(0), hidden = by.hidden(), d = by.down.dim(1);
  real *const sums = work, *const between = work + in;
  for (int64_t i = 0; i < in; ++i) sums[i] = rows[i] + by.position.value()[i];
  product(1, hidden, in, {sums, in}, {by.up.value().data(), hidden}, between, hidden);
  gelu_rows(1, hidden, {between, hidden}, nullptr, {between, hidden});
  product(1, d, hidden, {between, hidden}, {by.down.value().data(), d}, to, d);
  count_flops(network_row_flops(by));
}

int64_t network_reals(const BlockNetwork& by) { return by.up.dim(0) + by.hidden(); }

double network_row_flops(const BlockNetwork& by) {
  return 2 * static_cast<double>(by.hidden() * (by.up.dim(0) + by.down.dim(1)));
}

double network_flops(const CompressedBlocks& of, const BlockNetwork& by, int64_t heads,
                     int64_t len) {
  const int64_t count = of.ended(len), d = by.down.dim(1);
  if (count == 0) return 0;
  const int64_t strides = count - 1 + of.block / of.stride;
  return 2 * static_cast<double>(by.hidden()) *
         static_cast<double>(heads * (strides * of.block + count) * d + of.block * d);
}

}  // namespace attn
