// See unit_triangle.h. Forward substitution, a row after the other; the gradient is that of an
// inverse, dA = -Tᵀ·dT·Tᵀ, below the diagonal.
#include "variants/chunked/unit_triangle.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"

namespace attn {
namespace {

// t = (I + strictly lower part of a)⁻¹: row i is e_i - Σ_{j<i} a_ij·(row j). `row` holds n numbers.
void invert(int64_t n, const real* a, real* t, real* row) {
  for (int64_t i = 0; i < n; ++i) {
    real* const to = t + i * n;
    for (int64_t j = 0; j < i; ++j) row[j] = -a[i * n + j];
    product(1, i, i, {row, n}, {t, n}, to, n);
    to[i] = 1;
    std::fill(to + i + 1, to + n, real(0));
  }
}

}  // namespace

Var unit_triangle_inverse(const Var& a) {
  const Shape& shape = a.shape();
  ATTN_CHECK(shape.rank() >= 2 && shape[-1] == shape[-2],
             "unit triangle: {} must be square matrices", shape.str());
  const int64_t n = shape[-1], size = n * n, matrices = shape.size() / std::max<int64_t>(1, size);
  const Tensor t(shape);
  run_tasks(matrices, n, [&](int64_t m, real* work) {
    invert(n, a.value().data() + m * size, t.data() + m * size, work);
  });
  const double cube = static_cast<double>(matrices * n) * static_cast<double>(size);
  count_flops(unit_triangle_flops(matrices, n));
  count_bytes(sizeof(real) * 2.0 * static_cast<double>(a.value().size()));
  return custom_op(
      t, {a}, [t, n, size, matrices, cube](const Tensor& grad, std::span<Tensor> grads) {
        if (!grads[0].defined()) return;
        run_tasks(matrices, 2 * padded_reals(size) + packed_reals(n, n),
                  [&](int64_t m, real* work) {
                    const real* const inverse = t.data() + m * size;
                    real *const first = work, *const second = first + padded_reals(size),
                                *const panels = second + padded_reals(size);
                    product(n, n, n, {inverse, 1, n}, {grad.data() + m * size, n}, first, n);
                    pack_transposed(inverse, n, n, n, panels);
                    product(n, n, n, {first, n}, packed(panels, n), second, n);
                    real* const to = grads[0].data() + m * size;
                    for (int64_t i = 0; i < n; ++i)
                      for (int64_t j = 0; j < i; ++j) to[i * n + j] -= second[i * n + j];
                  });
        count_flops(4 * cube);
      });
}

Var lower_triangle(int64_t n, bool strict) {
  const Tensor ones = Tensor::zeros({n, n});
  for (int64_t i = 0; i < n; ++i) std::fill_n(ones.data() + i * n, strict ? i : i + 1, real(1));
  return Var(ones);
}

Var identity_matrix(int64_t n) {
  const Tensor ones = Tensor::zeros({n, n});
  for (int64_t i = 0; i < n; ++i) ones[i * n + i] = 1;
  return Var(ones);
}

}  // namespace attn
