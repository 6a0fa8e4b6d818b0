// Sums and means. A sum over all elements adds blocks in `real`, and the sums of blocks in double.
#include <algorithm>

#include "core/autograd/tape.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

double total_of(const Tensor& t) {
  constexpr int64_t kBlock = 4096;
  double total = 0;
  for (int64_t i = 0; i < t.size(); i += kBlock)
    total += static_cast<double>(sum_in_row(t.data() + i, std::min(kBlock, t.size() - i)));
  return total;
}

Var scaled_sum(const Var& a, double factor) {
  return record_op(Tensor::full({1}, static_cast<real>(factor * total_of(a.value()))), {&a, 1},
                   [factor](const Tensor& g, std::span<GradSlot> in) {
                     in[0].give(Tensor::full(in[0].shape(), static_cast<real>(factor) * g[0]));
                   });
}

Var scaled_sum_last(const char* name, const Var& a, bool mean) {
  const Shape shape = a.shape();
  ATTN_CHECK(shape.rank() >= 1 && shape[-1] >= 1, "{}: {}", name, shape.str());
  const int64_t n = shape[-1], rows = shape.size() / n;
  const real factor = mean ? real(1) / static_cast<real>(n) : real(1);
  Shape dropped;
  for (int i = 0; i + 1 < shape.rank(); i++) dropped = dropped.appended(shape[i]);
  const Tensor out(dropped);
  over_range(rows, n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++)
      out[row] = factor * sum_in_row(a.value().data() + row * n, n);
  });
  return record_op(out, {&a, 1}, [=](const Tensor& g, std::span<GradSlot> in) {
    const Tensor spread(in[0].shape());
    for (int64_t row = 0; row < rows; row++)
      std::fill_n(spread.data() + row * n, n, factor * g[row]);
    in[0].give(spread);
  });
}

}  // namespace

Var sum(const Var& a) { return scaled_sum(a, 1); }

Var mean(const Var& a) {
  ATTN_CHECK(a.value().size() > 0, "mean of {}", a.shape().str());
  return scaled_sum(a, 1 / static_cast<double>(a.value().size()));
}

Var sum_last(const Var& a) { return scaled_sum_last("sum_last", a, false); }
Var mean_last(const Var& a) { return scaled_sum_last("mean_last", a, true); }

Var mean_positions(const Var& a, std::span<const int64_t> lengths) {
  ATTN_CHECK(a.shape().rank() == 3, "mean_positions: {}", a.shape().str());
  const int64_t batch = a.dim(0), len = a.dim(1), dim = a.dim(2);
  std::vector<int64_t, Recycled<int64_t>> counts(lengths.begin(), lengths.end());
  if (counts.empty()) counts.assign(static_cast<size_t>(batch), len);
  ATTN_CHECK(static_cast<int64_t>(counts.size()) == batch, "mean_positions: {} lengths for {}",
             counts.size(), a.shape().str());
  for (const int64_t count : counts)
    ATTN_CHECK(count >= 0 && count <= len, "mean_positions: length {} of {}", count, len);
  const Tensor out = Tensor::zeros({batch, dim});  // [batch, dim]
  over_range(batch, len * dim, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b++) {
      const int64_t count = counts[static_cast<size_t>(b)];
      real* const to = out.data() + b * dim;
      add_column_sums(to, a.value().data() + b * len * dim, count, dim);
      for (int64_t j = 0; count > 0 && j < dim; j++) to[j] /= static_cast<real>(count);
    }
  });
  return record_op(out, {&a, 1}, [=](const Tensor& g, std::span<GradSlot> in) {
    const Tensor spread(in[0].shape());  // [batch, len, dim]
    over_range(batch, len * dim, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; b++) {
        const int64_t count = counts[static_cast<size_t>(b)];
        real* const to = spread.data() + b * len * dim;
        for (int64_t j = 0; count > 0 && j < dim; j++)
          to[j] = g[b * dim + j] / static_cast<real>(count);
        for (int64_t i = 1; i < count; i++) std::copy_n(to, dim, to + i * dim);
        std::fill(to + count * dim, to + len * dim, real(0));
      }
    });
    in[0].give(spread);
  });
}

}  // namespace attn
