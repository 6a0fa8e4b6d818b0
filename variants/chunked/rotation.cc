// See rotation.h.
#include "variants/chunked/rotation.h"

#include <cmath>

#include "core/base/check.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// By the angle of each pair (direction 1), or back (-1): to = factor·(rotated from), added if kAdd.
template <bool kAdd>
void rotate_into(const real* from, const real* by, real direction, real factor, int64_t dim,
                 real* to) {
  const auto put = [to](int64_t c, real value) { to[c] = kAdd ? to[c] + value : value; };
  for (int64_t c = 0; c + 1 < dim; c += 2) {
    const real cosine = factor * by[c], sine = factor * direction * by[c + 1];
    const real first = from[c], second = from[c + 1];
    put(c, first * cosine - second * sine);
    put(c + 1, first * sine + second * cosine);
  }
  if (dim % 2) put(dim - 1, factor * from[dim - 1]);
}

template <bool kAdd>
void rotate_all(const Tensor& x, const Tensor& table, const Tensor& factors, real direction,
                const Tensor& to) {
  const int64_t heads = x.dim(1), len = x.dim(2), dim = x.dim(3);
  over_range(x.size() / dim, dim, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t i = row % len, head = row / len % heads;
      const real factor = factors.defined() ? factors[head * factors.dim(1) + i] : real(1);
      rotate_into<kAdd>(x.data() + row * dim, table.data() + i * dim, direction, factor, dim,
                        to.data() + row * dim);
    }
  });
}

}  // namespace

Tensor rotation_table(int64_t positions, int64_t dim) {
  Tensor table({positions, dim});
  const int64_t pairs = dim / 2;
  table.fill(0);
  for (int64_t c = 0; c < pairs; ++c) {
    const double share = pairs > 1 ? static_cast<double>(c) / static_cast<double>(pairs - 1) : 0;
    const double rate = std::pow(10000.0, -share);
    for (int64_t i = 0; i < positions; ++i) {
      table[i * dim + 2 * c] = static_cast<real>(std::cos(static_cast<double>(i) * rate));
      table[i * dim + 2 * c + 1] = static_cast<real>(std::sin(static_cast<double>(i) * rate));
    }
  }
  return table;
}

Var rotate_rows(const Var& x, const Tensor& table, const Tensor& factors) {
  ATTN_CHECK(x.shape().rank() == 4 && table.dim(1) == x.dim(3) && x.dim(2) <= table.dim(0),
             "rotate_rows: {} by a table {}", x.shape().str(), table.shape().str());
  const Tensor out(x.shape());
  rotate_all<false>(x.value(), table, factors, 1, out);
  return custom_op(out, {x}, [table, factors](const Tensor& g, std::span<Tensor> grads) {
    rotate_all<true>(g, table, factors, -1, grads[0]);
  });
}

void rotate_row(const real* table_row, real factor, int64_t dim, real* row) {
  rotate_into<false>(row, table_row, 1, factor, dim, row);
}

}  // namespace attn
