// Batched matrix products, 2·m·n·k FLOPs each. Parallel over the batch and over blocks of rows.
// Transposed operands are views. The backward is two products of the same size.
#include <algorithm>

#include "core/autograd/tape.h"
#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "core/simd/blocked_product.h"

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
  Left matrix(int64_t i) const {
    const real* const at = data + (i % count) * rows * cols;
    return transposed ? Left{at, 1, cols} : Left{at, cols, 1};
  }
};

Operand operand(const Tensor& t, bool transposed) {
  const int64_t rows = t.dim(-2), cols = t.dim(-1);
  return {t.data(), rows * cols > 0 ? t.size() / (rows * cols) : 0, rows, cols, transposed};
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
  // Whole outputs where there are enough of them, else blocks of their rows too.
  const int64_t tall = (m + kTileRows - 1) / kTileRows, work = m * n * k * (batch / out_count);
  const int64_t wanted = std::min<int64_t>(threads(), out_count * work / kWorth + 1);
  const int64_t cuts = std::clamp<int64_t>((wanted + out_count - 1) / out_count, 1, tall);
  const int64_t tasks = out_count * cuts, workers = std::min(wanted, tasks);
  const int64_t reals = blocked_product_reals(m, n, k, b.matrix(0));
  Block block;
  if (reals > 0)
    block = Block(static_cast<size_t>(workers * reals) * sizeof(real), Purpose::workspace);
  parallel_for(workers, 1, [&](int64_t first, int64_t last) {
    for (int64_t w = first; w < last; w++) {
      real* const space = static_cast<real*>(block.data()) + w * reals;
      for (int64_t t = tasks * w / workers; t < tasks * (w + 1) / workers; t++) {
        const int64_t o = t / cuts, begin = tall * (t % cuts) / cuts * kTileRows;
        const int64_t rows = std::min(m, tall * (t % cuts + 1) / cuts * kTileRows) - begin;
        for (int64_t i = o; i < batch; i += out_count) {
          Left left = a.matrix(i);
          left.data += begin * left.row;
          blocked_product(rows, n, k, left, b.matrix(i), out + (o * m + begin) * n, n,
                          accumulate || i > o, space, Rounding::mixed);
        }
      }
    }
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

Operand transposed(Operand x, bool other_way) {
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
    const Operand grad_out = operand(g, false);
    if (in[0].needed()) {
      if (transpose_a)
        multiply_into(in[0], right, transposed(grad_out, true), batch);
      else
        multiply_into(in[0], grad_out, transposed(right, true), batch);
    }
    if (!in[1].needed()) return;
    if (transpose_b)
      multiply_into(in[1], transposed(grad_out, true), left, batch);
    else
      multiply_into(in[1], transposed(left, true), grad_out, batch);
  });
}

}  // namespace attn
