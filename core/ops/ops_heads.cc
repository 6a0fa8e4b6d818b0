// Rotary positions and repeated heads; see ops_heads.h. One pass over memory each way.
#include "core/ops/ops_heads.h"

#include <algorithm>
#include <cmath>

#include "core/autograd/tape.h"
#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// Turned forwards, or back: the gradient of a rotation is the inverse one.
Tensor swapped_heads(const Tensor& x, const Tensor& table, int64_t first, real direction) {
  const Tensor out(x.shape());
  const int64_t len = x.dim(2), dim = x.dim(3);
  over_range(dim ? x.size() / dim : 0, dim, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const real *const from = x.data() + row * dim, *const by =
                                                         table.data() + (first + row % len) * dim;
      real* const to = out.data() + row * dim;
      for (int64_t c = 0; c + 1 < dim; c += 2) {
        const real cosine = by[c], sine = direction * by[c + 1];
        to[c] = from[c] * cosine - from[c + 1] * sine;
        to[c + 1] = from[c] * sine + from[c + 1] * cosine;
      }
      if (dim % 2) to[dim - 1] = from[dim - 1];
    }
  });
  return out;
}

}  // namespace

Tensor rotary_table(int64_t positions, int64_t dim, double base) {
  const Tensor table({positions, dim});
  for (int64_t i = 0; i < positions; ++i)
    for (int64_t c = 0; c < dim; ++c) {
      const double rate =
          std::pow(base, -static_cast<double>(c / 2 * 2) / static_cast<double>(dim));
      const double angle = static_cast<double>(i) * rate;
      table[i * dim + c] = static_cast<real>(c % 2 == 0 ? std::cos(angle) : std::sin(angle));
    }
  return table;
}

Var rotate(const Var& a, const Tensor& table, int64_t first) {
  ATTN_CHECK(a.shape().rank() == 4 && table.shape().rank() == 2 && table.dim(1) == a.dim(3),
             "rotate: {} by a table {}", a.shape().str(), table.shape().str());
  ATTN_CHECK(first >= 0 && first + a.dim(2) <= table.dim(0),
             "rotate: positions {} to {} of a table for {}", first, first + a.dim(2), table.dim(0));
  return record_op(swapped_heads(a.value(), table, first, 1), {&a, 1},
                   [table, first](const Tensor& g, std::span<GradSlot> in) {
                     in[0].give(swapped_heads(g, table, first, -1));
                   });
}

Var repeat_heads(const Var& a, int64_t times) {
  ATTN_CHECK(a.shape().rank() == 4 && times >= 1, "repeat_heads: {} times {}", a.shape().str(),
             times);
  if (times == 1) return a;
  const int64_t matrix = a.dim(2) * a.dim(3), count = a.dim(0) * a.dim(1);
  const Tensor out(a.shape().with(1, a.dim(1) * times));
  const Mark mark(Part::gathering);
  for (int64_t i = 0; i < count * times; ++i)
    std::copy_n(a.value().data() + i / times * matrix, matrix, out.data() + i * matrix);
  return record_op(out, {&a, 1}, [=](const Tensor& g, std::span<GradSlot> in) {
    const Mark back(Part::gathering);
    const Tensor& sum = in[0].sum();
    for (int64_t i = 0; i < count * times; ++i) {
      const real* const from = g.data() + i * matrix;
      real* const to = sum.data() + i / times * matrix;
      for (int64_t j = 0; j < matrix; ++j) to[j] += from[j];
    }
  });
}

}  // namespace attn
