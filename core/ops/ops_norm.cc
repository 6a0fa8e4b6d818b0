// Row scaling, row norms, softmax, layer normalisation (Ba et al. 2016, arXiv:1607.06450) and
// embedding. Each op is fused: it makes a few passes over a row in the first-level cache.
#include <algorithm>
#include <cmath>

#include "core/autograd/tape.h"
#include "core/base/recycled.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// Rows of `width` numbers of x normalised with their mean and 1/deviation.
struct Normalised {
  Tensor x;      // [.., width]
  Tensor stats;  // [rows, 2]
  int64_t rows, width;
};

}  // namespace

Var scale_rows(const Var& a, const Var& factors) {
  bool fits = a.shape().rank() == factors.shape().rank() + 1;
  for (int i = 0; fits && i < factors.shape().rank(); i++) fits = a.dim(i) == factors.dim(i);
  ATTN_CHECK(fits, "scale_rows: {} with factors {}", a.shape().str(), factors.shape().str());
  const int64_t n = a.dim(-1), rows = factors.value().size();
  const Tensor x = a.value(), s = factors.value(), y(a.shape());
  const auto times = [=](const Tensor& from, const Tensor& to) {
    over_range(rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++)
        for (int64_t j = row * n; j < (row + 1) * n; j++) to[j] = from[j] * s[row];
    });
  };
  times(x, y);
  const Var inputs[] = {a, factors};
  return record_op(y, inputs, [=](const Tensor& g, std::span<GradSlot> in) {
    if (in[1].needed()) {
      const Tensor ds(s.shape());
      dots_of_rows(rows, n, g.data(), n, x.data(), n, ds.data());
      in[1].give(ds);
    }
    if (!in[0].needed()) return;
    const Tensor dx(x.shape());
    times(g, dx);
    in[0].give(dx);
  });
}

Var row_norm(const Var& a) {
  ATTN_CHECK(a.shape().rank() >= 1, "row_norm: {}", a.shape().str());
  const Shape kept = a.shape().with(a.shape().rank() - 1, 1);
  const int64_t n = a.dim(-1), rows = kept.size();
  const Tensor x = a.value(), y(kept);
  over_range(rows, n, [&](int64_t begin, int64_t end) {
    const real* const from = x.data() + begin * n;
    dots_of_rows(end - begin, n, from, n, from, n, y.data() + begin);
    for (int64_t row = begin; row < end; row++) y[row] = std::sqrt(y[row]);
  });
  return record_op(y, {&a, 1}, [=](const Tensor& g, std::span<GradSlot> in) {
    const Tensor dx(x.shape());
    over_range(rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const real factor = y[row] > 0 ? g[row] / y[row] : real(0);
        for (int64_t j = row * n; j < (row + 1) * n; j++) dx[j] = factor * x[j];
      }
    });
    in[0].give(dx);
  });
}

Var softmax(const Var& a) {
  ATTN_CHECK(a.shape().rank() >= 1, "softmax: {}", a.shape().str());
  const int64_t n = a.dim(-1), rows = n ? a.value().size() / n : 0;
  const Tensor y(a.shape());
  over_range(rows, 8 * n, [&](int64_t begin, int64_t end) {
    softmax_rows(end - begin, n, a.value().data() + begin * n, y.data() + begin * n);
  });
  return record_op(y, {&a, 1}, [=](Tensor g, std::span<GradSlot> in) {
    const Tensor dx = g.unshared() ? g : Tensor(g.shape());
    over_range(rows, 2 * n, [&](int64_t begin, int64_t end) {
      softmax_rows_backward(end - begin, n, y.data() + begin * n, g.data() + begin * n,
                            dx.data() + begin * n);
    });
    in[0].give(dx);
  });
}

Var layer_norm(const Var& a, const Var& gain, const Var& bias, double epsilon) {
  const bool fits = a.shape().rank() >= 1 && a.dim(-1) >= 1 && gain.shape() == Shape({a.dim(-1)}) &&
                    bias.shape() == gain.shape();
  ATTN_CHECK(fits, "layer_norm: {} with gain {} and bias {}", a.shape().str(), gain.shape().str(),
             bias.shape().str());
  const Var inputs[] = {a, gain, bias};
  const int64_t n = a.dim(-1), rows = a.value().size() / n;
  const bool record = recording(inputs);
  const Normalised kept = {a.value(), record ? Tensor({rows, 2}) : Tensor(), rows, n};
  const Tensor y(a.shape()), scales = gain.value();
  const KernelMark mark(Part::norms);
  over_range(rows, 4 * n, [&](int64_t begin, int64_t end) {
    layer_norm_rows(end - begin, n, kept.x.data() + begin * n, scales.data(), bias.value().data(),
                    static_cast<real>(epsilon), y.data() + begin * n,
                    record ? kept.stats.data() + 2 * begin : nullptr);
  });
  return record_op(y, inputs, [kept, scales](const Tensor& g, std::span<GradSlot> in) {
    const KernelMark back(Part::norms);
    const int64_t width = kept.width;
    const int64_t grain = std::max<int64_t>((kept.rows + threads() - 1) / threads(), 64);
    const int64_t pieces = std::max<int64_t>(1, (kept.rows + grain - 1) / grain);
    const Tensor parts = Tensor::zeros({pieces, 2, width});  // dgain and dbias of each piece
    bool add = false;
    real* const dx = in[0].needed() ? in[0].target(add).data() : nullptr;
    parallel_for(pieces, 1, [&](int64_t first, int64_t last) {
      for (int64_t piece = first; piece < last; piece++) {
        real* const part = parts.data() + piece * 2 * width;
        const int64_t begin = piece * grain, count = std::min(kept.rows - begin, grain);
        layer_norm_rows_backward(count, width, kept.x.data() + begin * width,
                                 kept.stats.data() + 2 * begin, g.data() + begin * width,
                                 scales.data(), dx ? dx + begin * width : nullptr, add, part,
                                 part + width);
      }
    });
    for (int64_t which = 0; which < 2; which++) {
      if (!in[1 + static_cast<size_t>(which)].needed()) continue;
      const Tensor& total = in[1 + static_cast<size_t>(which)].sum();
      for (int64_t piece = 0; piece < pieces; piece++)
        for (int64_t j = 0; j < width; j++) total[j] += parts[(piece * 2 + which) * width + j];
    }
  });
}

Var embedding(const Var& table, std::span<const int32_t> ids, Shape leading) {
  ATTN_CHECK(table.shape().rank() == 2, "embedding: table {}", table.shape().str());
  ATTN_CHECK(static_cast<int64_t>(ids.size()) == leading.size(), "embedding: {} ids for {}",
             ids.size(), leading.str());
  const int64_t vocab = table.dim(0), dim = table.dim(1);
  const Tensor out(leading.appended(dim));
  for (const int32_t id : ids)
    ATTN_CHECK(id >= 0 && id < vocab, "embedding: id {} of {}", id, vocab);
  over_range(static_cast<int64_t>(ids.size()), dim, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      std::copy_n(table.value().data() + ids[static_cast<size_t>(i)] * dim, dim,
                  out.data() + i * dim);
  });
  if (!recording({&table, 1})) return Var(out);
  return record_op(out, {&table, 1},
                   [dim, kept = std::vector<int32_t, Recycled<int32_t>>(ids.begin(), ids.end())](
                       const Tensor& g, std::span<GradSlot> in) {
                     real* const rows = in[0].sum().data();
                     // Threads share the columns: rows may meet the same id.
                     const int64_t work = static_cast<int64_t>(kept.size());
                     constexpr int64_t kColumns = 64 / static_cast<int64_t>(sizeof(real));
                     over_range((dim + kColumns - 1) / kColumns, work * kColumns,
                                [&](int64_t first, int64_t last) {
                                  const int64_t begin = first * kColumns,
                                                end = std::min(dim, last * kColumns);
                                  const real* from = g.data();
                                  for (const int32_t id : kept) {
                                    real* const row = rows + id * dim;
                                    for (int64_t j = begin; j < end; j++) row[j] += from[j];
                                    from += dim;
                                  }
                                });
                   });
}

}  // namespace attn
