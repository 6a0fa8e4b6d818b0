// Means of `size` neighbouring positions, without padding, and the gradients of means. n·d
// additions for n positions in all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/marks.h"
#include "core/simd/rows.h"
#include "core/tensor/tensor.h"
#include "variants/softmax/softmax.h"

namespace attn {

struct PositionMeans {
  int64_t size = 1, heads = 1, len = 0;  // heads: of one batch entry
  IndexList lengths = {};                // positions of each entry before padding; empty: all

  int64_t valid(int64_t row) const {  // row: of all heads
    return lengths.empty() ? len : lengths[static_cast<size_t>(row / heads)];
  }
  int64_t count(int64_t row, int64_t cell) const {
    return std::clamp<int64_t>(valid(row) - cell * size, 0, size);
  }

  int64_t cells(int64_t length) const { return (length + size - 1) / size; }
  int64_t cells() const { return cells(len); }

  // x [batch, heads, len, dim] -> [batch, heads, cells, dim]. A mean of no position is 0.
  Tensor of(const Tensor& x) const {
    return of(x, 0, [](int64_t) { return real(0); });
  }
  // The same with `more` columns behind, each extra(count).
  template <class Extra>
  Tensor of(const Tensor& x, int64_t more, const Extra& extra) const {
    const Mark mark(Part::sums);
    const int64_t d = x.dim(3), all = cells(), width = d + more;
    const Tensor result({x.dim(0), x.dim(1), all, width});
    over_range(x.dim(0) * x.dim(1) * all, size * d, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at / all, cell = at % all, n = count(row, cell);
        real* const to = result.data() + at * width;
        std::fill_n(to, width, real(0));
        if (n == 0) continue;
        add_column_sums(to, x.data() + (row * len + cell * size) * d, n, d);
        const real share = 1 / static_cast<real>(n);
        for (int64_t c = 0; c < d; ++c) to[c] *= share;
        std::fill_n(to + d, more, extra(n));
      }
    });
    return result;
  }

  // Adds the gradients of means, [batch, heads, cells, dim or more], to those of their positions,
  // [batch, heads, len, dim].
  void spread(const Tensor& means, const Tensor& to) const {
    const Mark mark(Part::sums);
    const int64_t d = to.dim(3), width = means.dim(3), all = cells();
    over_range(to.dim(0) * to.dim(1) * all, size * d, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at / all, cell = at % all, n = count(row, cell);
        const real* const from = means.data() + at * width;
        real* into = to.data() + (row * len + cell * size) * d;
        const real share = 1 / static_cast<real>(n);  // unread where n is 0
        for (int64_t i = 0; i < n; ++i, into += d) {
          ATTN_INDEPENDENT
          for (int64_t c = 0; c < d; ++c) into[c] += share * from[c];
        }
      }
    });
  }
};

}  // namespace attn
