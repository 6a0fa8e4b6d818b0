// Means of `size` neighbouring positions, without padding, of the means of half as many, and the
// gradients of means. 2·n·d operations for all sizes.
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

  // Cells are made of finer ones: the two means of half as many positions each or, at the sizes 1
  // and 2, positions themselves.
  int64_t half() const { return std::max<int64_t>(1, size / 2); }
  // visit(the cell, its positions, a finer cell that it is made of, the positions of that)
  template <class Visit>
  void each_part(int64_t rows, int64_t finer_cells, int64_t dim, const Visit& visit) const {
    const int64_t all = cells(), parts = size / half();
    over_range(rows * all, 2 * dim, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at / all, first = at % all * parts;
        for (int64_t part = first; part < first + parts; ++part) {
          const int64_t n = std::clamp<int64_t>(valid(row) - part * half(), 0, half());
          if (n > 0) visit(at, count(row, at % all), row * finer_cells + part, n);
        }
      }
    });
  }

  // finer [batch, heads, finer cells, dim or more] -> [batch, heads, cells, dim + more], with
  // extra(count) in the columns behind. A mean of no position is 0.
  template <class Extra>
  Tensor of(const Tensor& finer, int64_t dim, int64_t more, const Extra& extra) const {
    const Mark mark(Part::sums);
    const int64_t width = dim + more, from_width = finer.dim(3);
    const int64_t all = cells(), parts = size / half(), finer_cells = finer.dim(2);
    const Tensor result({finer.dim(0), finer.dim(1), all, width});
    over_range(finer.dim(0) * finer.dim(1) * all, 2 * dim, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t row = at / all, cell = at % all, n = count(row, cell);
        const int64_t first = std::min(n, half()), second = n - first;
        real* const to = result.data() + at * width;
        const real* const a = finer.data() + (row * finer_cells + cell * parts) * from_width;
        const real* const b = a + from_width;
        if (n == 0) {
          std::fill_n(to, width, real(0));
          continue;
        }
        const real of_a = static_cast<real>(first) / static_cast<real>(n),
                   of_b = static_cast<real>(second) / static_cast<real>(n);
        if (second == 0)
          std::copy_n(a, dim, to);  // the other one may be padding
        else
          add_parts(dim, of_a, a, of_b, b, to);
        std::fill_n(to + dim, more, extra(n));
      }
    });
    return result;
  }
  Tensor of(const Tensor& finer, int64_t dim) const {
    return of(finer, dim, 0, [](int64_t) { return real(0); });
  }

  static void add_parts(int64_t dim, real of_a, const real* a, real of_b, const real* b, real* to) {
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < dim; ++c) to[c] = of_a * a[c] + of_b * b[c];
  }

  // Adds the gradients of means, [batch, heads, cells, dim or more], to those of the finer cells.
  void spread(const Tensor& means, const Tensor& finer, int64_t dim) const {
    const Mark mark(Part::sums);
    const int64_t width = means.dim(3), to_width = finer.dim(3);
    each_part(finer.dim(0) * finer.dim(1), finer.dim(2), dim,
              [&](int64_t cell, int64_t n, int64_t part, int64_t part_n) {
                const real* const from = means.data() + cell * width;
                real* const into = finer.data() + part * to_width;
                const real share = static_cast<real>(part_n) / static_cast<real>(n);
                ATTN_INDEPENDENT
                for (int64_t c = 0; c < dim; ++c) into[c] += share * from[c];
              });
  }
};

}  // namespace attn
