// The pseudo-inverse of the weights between landmarks times values, by a complete orthogonal
// decomposition in double: it solves, so that the residual stays small however close to singular
// the weights are. About 4/3·m³ FLOPs; see landmarks.h.
#include <algorithm>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/dense/dense.h"
#include "variants/lowrank/landmarks.h"

namespace attn {
namespace {

using attn_dense::Side;
using Square = std::vector<double>;  // by columns

Square columns_of(const real* x, int64_t rows, int64_t cols, int64_t row) {
  Square columns(static_cast<size_t>(rows * cols));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < cols; ++c)
      columns[static_cast<size_t>(c * rows + i)] = static_cast<double>(x[i * row + c]);
  return columns;
}

void add_columns(const Square& from, double scale, real* to, int64_t rows, int64_t row) {
  const int64_t cols = rows ? static_cast<int64_t>(from.size()) / rows : 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < cols; ++c)
      to[i * row + c] += static_cast<real>(scale * from[static_cast<size_t>(c * rows + i)]);
}

}  // namespace

double exact_inverse_flops(int64_t m, int64_t dim) {
  const auto size = static_cast<double>(m);
  return size * size * (4.0 / 3 * size + 3 * static_cast<double>(dim));
}

Var exact_inverse_product(const Var& weights, const Var& values, std::span<const int64_t> lengths) {
  const Tensor a = weights.value(), b = values.value(), out = Tensor::zeros(values.shape());
  const int64_t m = a.dim(3), d = b.dim(3), heads = a.dim(1);
  const auto used = [=, own = std::vector<int64_t>(lengths.begin(), lengths.end())](int64_t head) {
    return own.empty() ? m : std::min(m, own[static_cast<size_t>(head / heads)]);
  };
  const auto weights_of = [=](int64_t head) {
    return columns_of(a.data() + head * m * m, used(head), used(head), m);
  };
  run_tasks(a.dim(0) * heads, 0, [&](int64_t head, real*) {
    const Mark mark(Part::products);
    const int64_t n = used(head);
    if (n == 0) return;
    Square x = columns_of(b.data() + head * m * d, n, d, d);
    attn_dense::solve_any_rank(n, d, Side::plain, weights_of(head).data(), x.data());
    add_columns(x, 1, out.data() + head * m * d, n, d);
    count_flops(exact_inverse_flops(n, d));
  });
  return custom_op(out, {weights, values}, [=](const Tensor& grad, std::span<Tensor> grads) {
    run_tasks(a.dim(0) * heads, 0, [&](int64_t head, real*) {
      const Mark mark(Part::products);
      const int64_t n = used(head);
      if (n == 0) return;
      Square back = columns_of(grad.data() + head * m * d, n, d, d);
      attn_dense::solve_any_rank(n, d, Side::transposed, weights_of(head).data(), back.data());
      if (grads[1].defined()) add_columns(back, 1, grads[1].data() + head * m * d, n, d);
      if (grads[0].defined()) {
        const Square of_out = columns_of(out.data() + head * m * d, n, d, d);
        Square of_weights(static_cast<size_t>(n * n));
        attn_dense::product(n, d, n, Side::plain, back.data(), Side::transposed, of_out.data(),
                            of_weights.data());
        add_columns(of_weights, -1, grads[0].data() + head * m * m, n, m);
      }
      count_flops(exact_inverse_flops(n, d) +
                  2 * static_cast<double>(grads[0].defined() ? n * n * d : 0));
    });
  });
}

}  // namespace attn
