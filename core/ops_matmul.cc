// Batched products and linear: 2·m·n·k FLOPs a product, threads over the batch or over blocks of
// rows; transposes are views. Backward is two more products of the same size.
#include <algorithm>

#include "core/counters.h"
#include "core/eigen.h"
#include "core/kernels/rows.h"
#include "core/ops.h"
#include "core/tape.h"

namespace attn {
namespace {

constexpr int64_t kWorth = 1 << 18;  // multiply-adds a thread should have: about 5 µs

// `count` dense matrices of rows × cols, used as they are or transposed.
struct Operand {
  const real* data;
  int64_t count, rows, cols;
  bool transposed;
  int64_t height() const { return transposed ? cols : rows; }
  int64_t width() const { return transposed ? rows : cols; }
  ConstMatrixMap matrix(int64_t i) const {
    return map(data + (i % count) * rows * cols, rows, cols);
  }
};

Operand operand(const Tensor& t, bool transposed) {
  const int64_t rows = t.dim(-2), cols = t.dim(-1);
  return {t.data(), rows * cols > 0 ? t.size() / (rows * cols) : 0, rows, cols, transposed};
}

template <class A, class B>
void product(MatrixMap out, const A& a, const B& b, bool accumulate) {
  if (accumulate)
    out.noalias() += a * b;
  else
    out.noalias() = a * b;
}

// Rows [begin, end) of out (+)= op(a_i) · op(b_i).
void product_rows(real* out, const Operand& a, const Operand& b, int64_t i, int64_t begin,
                  int64_t end, bool accumulate) {
  const int64_t rows = end - begin, n = b.width();
  const MatrixMap to = map(out + begin * n, rows, n);
  const ConstMatrixMap x = a.matrix(i), y = b.matrix(i);
  if (a.transposed && b.transposed)
    product(to, x.middleCols(begin, rows).transpose(), y.transpose(), accumulate);
  else if (a.transposed)
    product(to, x.middleCols(begin, rows).transpose(), y, accumulate);
  else if (b.transposed)
    product(to, x.middleRows(begin, rows), y.transpose(), accumulate);
  else
    product(to, x.middleRows(begin, rows), y, accumulate);
}

// out_o (+)= sum of op(a_i)·op(b_i) over i ≡ o mod out_count, i < batch. Operands repeat when they
// have fewer than `batch`.
void multiply_batched(real* out, int64_t out_count, Operand a, Operand b, int64_t batch,
                      bool accumulate) {
  if (b.count == 1 && !a.transposed && a.count == batch && out_count == batch) {
    a.rows *= batch;  // one tall product
    a.count = batch = out_count = 1;
  } else if (out_count == 1 && a.transposed && !b.transposed && a.count == batch &&
             b.count == batch) {
    a.rows *= batch;  // the sum over the batch is a product with a long inner dimension
    b.rows *= batch;
    a.count = b.count = batch = 1;
  }
  const int64_t m = a.height(), n = b.width(), k = a.width();
  count_flops(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
              static_cast<double>(batch));
  if (m * n * k * batch == 0) {
    if (!accumulate) std::fill(out, out + out_count * m * n, real(0));
    return;
  }
  if (out_count == 1) {
    const int64_t grain = std::max<int64_t>(16, kWorth / (n * k * batch) / 16 * 16);
    parallel_for(m, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < batch; i++)
        product_rows(out, a, b, i, begin, end, accumulate || i > 0);
    });
    return;
  }
  const int64_t work = m * n * k * (batch / out_count);
  parallel_for(out_count, std::max<int64_t>(1, kWorth / work), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; o++)
      for (int64_t i = o; i < batch; i += out_count)
        product_rows(out + o * m * n, a, b, i, 0, m, accumulate || i > o);
  });
}

void multiply_into(GradSlot& slot, Operand a, Operand b, int64_t batch) {
  bool accumulate = false;
  const Tensor& out = slot.target(accumulate);
  const int64_t each = out.dim(-2) * out.dim(-1);
  multiply_batched(out.data(), each ? out.size() / each : 0, a, b, batch, accumulate);
}

// The leading dimensions of `few` are the last of those of `many`.
bool leading_fits(const Shape& few, const Shape& many) {
  if (few.rank() > many.rank()) return false;
  for (int i = 3; i <= few.rank(); i++)
    if (few[-i] != many[-i]) return false;
  return true;
}

Shape matmul_shape(const Shape& a, const Shape& b, bool transpose_a, bool transpose_b) {
  bool fits = a.rank() >= 2 && b.rank() >= 2 && (leading_fits(b, a) || leading_fits(a, b));
  fits = fits && a[transpose_a ? -2 : -1] == b[transpose_b ? -1 : -2];
  ATTN_CHECK(fits, "matmul: {}{} times {}{}", a.str(), transpose_a ? " transposed" : "", b.str(),
             transpose_b ? " transposed" : "");
  const Shape& leading = a.rank() >= b.rank() ? a : b;
  return leading.with(-2, a[transpose_a ? -1 : -2]).with(-1, b[transpose_b ? -2 : -1]);
}

Operand turned(Operand x, bool other_way) {
  x.transposed = x.transposed != other_way;
  return x;
}

}  // namespace

Var matmul(const Var& a, const Var& b, bool transpose_a, bool transpose_b) {
  const Shape shape = matmul_shape(a.shape(), b.shape(), transpose_a, transpose_b);
  const Tensor x = a.value(), y = b.value();
  const Tensor out(shape);
  const int64_t each = shape[-2] * shape[-1];
  const int64_t batch = each ? shape.size() / each : 0;
  multiply_batched(out.data(), batch, operand(x, transpose_a), operand(y, transpose_b), batch,
                   false);
  const Var inputs[] = {a, b};
  return record_op(out, inputs, [=](const Tensor& g, std::span<GradSlot> in) {
    const Operand left = operand(x, transpose_a), right = operand(y, transpose_b);
    const Operand top = operand(g, false);
    if (in[0].needed()) {
      if (transpose_a)
        multiply_into(in[0], right, turned(top, true), batch);
      else
        multiply_into(in[0], top, turned(right, true), batch);
    }
    if (!in[1].needed()) return;
    if (transpose_b)
      multiply_into(in[1], turned(top, true), left, batch);
    else
      multiply_into(in[1], turned(left, true), top, batch);
  });
}

Var linear(const Var& x, const Var& weight, const Var& bias) {
  const bool fits =
      x.shape().rank() >= 1 && weight.shape().rank() == 2 && x.dim(-1) == weight.dim(0);
  ATTN_CHECK(fits, "linear: {} times {}", x.shape().str(), weight.shape().str());
  ATTN_CHECK(!bias.defined() || bias.shape() == Shape({weight.dim(1)}),
             "linear: bias {} for weight {}", bias.defined() ? bias.shape().str() : "",
             weight.shape().str());
  const int64_t in_dim = weight.dim(0), out_dim = weight.dim(1);
  const int64_t rows = in_dim ? x.value().size() / in_dim : 0;
  const Tensor input = x.value(), w = weight.value();
  const Tensor out(x.shape().with(-1, out_dim));  // [.., out]
  if (bias.defined()) {
    const real* offsets = bias.value().data();
    over_range(rows, out_dim, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++)
        std::copy(offsets, offsets + out_dim, out.data() + row * out_dim);
    });
  }
  const Operand rows_of_x = {input.data(), 1, rows, in_dim, false};
  multiply_batched(out.data(), 1, rows_of_x, operand(w, false), 1, bias.defined());
  const Var inputs[] = {x, weight, bias};
  return record_op(out, inputs, [=](const Tensor& g, std::span<GradSlot> in) {
    const Operand left = {input.data(), 1, rows, in_dim, false};
    const Operand top = {g.data(), 1, rows, out_dim, false};
    if (in[2].needed()) add_column_sums(in[2].sum().data(), g.data(), rows, out_dim);
    if (in[1].needed()) multiply_into(in[1], turned(left, true), top, 1);
    if (!in[0].needed()) return;
    bool accumulate = false;
    const Tensor& dx = in[0].target(accumulate);
    multiply_batched(dx.data(), 1, top, operand(w, true), 1, accumulate);
  });
}

}  // namespace attn
