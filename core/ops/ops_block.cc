// Passes over rows in the first-level cache; see ops_block.h. Each reads its input once forward and
// once or twice backward.
#include "core/ops/ops_block.h"

#include <algorithm>
#include <cmath>

#include "core/autograd/tape.h"
#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/ops/row_pieces.h"
#include "core/ops/silu_rows.h"
#include "core/simd/row_ops.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

struct Convolved {
  int64_t batch, len, channels, count;
  int64_t last() const { return count - 1; }
};

// y = bias + Σ_j taps_j ⊙ x_{t-last+j} of one position.
void convolve_row(const Convolved& s, int64_t t, const real* x, const real* taps, const real* bias,
                  real* y) {
  if (bias)
    std::copy_n(bias, s.channels, y);
  else
    std::fill_n(y, s.channels, real(0));
  for (int64_t j = std::max<int64_t>(0, s.last() - t); j < s.count; ++j) {
    const real *const from = x + (t - s.last() + j) * s.channels, *const tap =
                                                                      taps + j * s.channels;
    for (int64_t c = 0; c < s.channels; ++c) y[c] += tap[c] * from[c];
  }
}

}  // namespace

Var silu(const Var& a) {
  const Tensor x = a.value(), y(a.shape());
  over_range(x.size(), 4, [&](int64_t begin, int64_t end) {
    silu_row(end - begin, x.data() + begin, y.data() + begin);
  });
  return record_op(y, {&a, 1}, [x](const Tensor& g, std::span<GradSlot> in) {
    const Tensor dx(x.shape());
    over_range(x.size(), 6, [&](int64_t begin, int64_t end) {
      silu_gradient(end - begin, x.data() + begin, g.data() + begin, dx.data() + begin);
    });
    in[0].give(dx);
  });
}

Var short_convolution(const Var& x, const Var& taps, const Var& bias, bool activated) {
  const KernelMark mark(Part::convolution);
  const bool fits = x.shape().rank() == 3 && taps.shape().rank() == 2 && taps.dim(0) >= 1 &&
                    taps.dim(1) == x.dim(2) &&
                    (!bias.defined() || bias.shape() == Shape({x.dim(2)}));
  ATTN_CHECK(fits, "short_convolution: {} with taps {} and bias {}", x.shape().str(),
             taps.shape().str(), bias.defined() ? bias.shape().str() : "none");
  const Convolved s{x.dim(0), x.dim(1), x.dim(2), taps.dim(0)};
  const Tensor from = x.value(), tap = taps.value(), y(x.shape());
  const real* const shift = bias.defined() ? bias.value().data() : nullptr;
  const Var all[] = {x, taps, bias};
  const std::span<const Var> inputs(all, bias.defined() ? 3 : 2);
  // What the activation read; where nothing is recorded, one row of it at a time.
  const bool keep = activated && recording(inputs);
  const Tensor sums = keep ? Tensor(x.shape()) : Tensor();
  over_range(s.batch * s.len, s.channels * (s.count + 4), [&](int64_t begin, int64_t end) {
    const Tensor one = activated && !keep ? Tensor({s.channels}) : Tensor();
    for (int64_t row = begin; row < end; ++row) {
      real* const to = y.data() + row * s.channels;
      real* const sum = !activated ? to : keep ? sums.data() + row * s.channels : one.data();
      convolve_row(s, row % s.len, from.data() + row / s.len * s.len * s.channels, tap.data(),
                   shift, sum);
      if (activated) silu_row(s.channels, sum, to);
    }
  });
  return record_op(y, inputs, [s, from, tap, sums, activated](Tensor g, std::span<GradSlot> in) {
    const KernelMark back(Part::convolution);
    const int64_t rows = s.batch * s.len, wide = s.channels;
    if (activated) {
      const Tensor of_sum(sums.shape());
      over_range(rows, 6 * wide, [&](int64_t begin, int64_t end) {
        silu_gradient((end - begin) * wide, sums.data() + begin * wide, g.data() + begin * wide,
                      of_sum.data() + begin * wide);
      });
      g = of_sum;
    }
    const bool biased = in.size() == 3 && in[2].needed();
    if (in[1].needed() || biased) {
      const int64_t pieces = pieces_of(rows);
      const Tensor parts = Tensor::zeros({pieces, (s.count + 1) * wide});
      parallel_for(pieces, 1, [&](int64_t first, int64_t end) {
        for (int64_t piece = first; piece < end; ++piece) {
          real* const part = parts.data() + piece * (s.count + 1) * wide;
          for (int64_t row = piece * kPieceRows; row < std::min(rows, (piece + 1) * kPieceRows);
               ++row) {
            const real* const of = g.data() + row * wide;
            for (int64_t j = std::max<int64_t>(0, s.last() - row % s.len); j < s.count; ++j) {
              const real* const at = from.data() + (row - s.last() + j) * wide;
              for (int64_t c = 0; c < wide; ++c) part[j * wide + c] += of[c] * at[c];
            }
            for (int64_t c = 0; c < wide; ++c) part[s.count * wide + c] += of[c];
          }
        }
      });
      if (in[1].needed()) add_pieces(parts, 0, s.count * wide, in[1].sum());
      if (biased) add_pieces(parts, s.count * wide, wide, in[2].sum());
    }
    if (!in[0].needed()) return;
    const Tensor dx = Tensor::zeros(from.shape());
    over_range(rows, s.count * wide, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t j = std::max<int64_t>(0, row % s.len + s.count - s.len); j < s.count; ++j) {
          const real *const of = g.data() + (row + s.last() - j) * wide, *const by =
                                                                             tap.data() + j * wide;
          for (int64_t c = 0; c < wide; ++c) dx[row * wide + c] += by[c] * of[c];
        }
    });
    in[0].give(dx);
  });
}

Var previous_taps(int64_t channels) {
  const Tensor taps = Tensor::zeros({2, channels});
  std::fill_n(taps.data(), channels, real(1));
  return Var(taps);
}

Var mix_rows(const Var& x, const Var& other, const Var& share, const Var& more) {
  const int64_t n = x.dim(-1), rows = n ? x.value().size() / n : 0;
  ATTN_CHECK(other.shape() == x.shape() && share.shape() == Shape({n}) &&
                 (!more.defined() || more.shape() == x.shape()),
             "mix_rows: {} and {} by {}", x.shape().str(), other.shape().str(),
             share.shape().str());
  const Tensor a = x.value(), b = other.value(), fixed = share.value(), y(x.shape()),
               added = more.defined() ? more.value() : Tensor();
  // Of one row, `to` = the share of `other` in each number.
  const auto share_row = [=](int64_t row, real* to) {
    std::copy_n(fixed.data(), n, to);
    if (!added.defined()) return;
    const real* const own = added.data() + row * n;
    for (int64_t j = 0; j < n; ++j) to[j] += own[j];
  };
  over_range(rows, 4 * n, [&](int64_t begin, int64_t end) {
    const Tensor shares({n});
    for (int64_t row = begin; row < end; ++row) {
      const real *const from = a.data() + row * n, *const to = b.data() + row * n;
      real* const out = y.data() + row * n;
      share_row(row, shares.data());
      for (int64_t j = 0; j < n; ++j) out[j] = from[j] + (to[j] - from[j]) * shares[j];
    }
  });
  const Var all[] = {x, other, share, more};
  return record_op(
      y, {all, more.defined() ? size_t{4} : size_t{3}},
      [=](const Tensor& g, std::span<GradSlot> in) {
        const auto rows_for = [&](size_t input) {
          return input < in.size() && in[input].needed() ? Tensor(g.shape()) : Tensor();
        };
        const Tensor of_x = rows_for(0), of_other = rows_for(1), of_more = rows_for(3);
        const Tensor parts = Tensor::zeros({pieces_of(rows), n});
        parallel_for(parts.dim(0), 1, [&](int64_t first, int64_t last) {
          const Tensor shares({n}), apart({n});
          for (int64_t row = first * kPieceRows; row < std::min(rows, last * kPieceRows); ++row) {
            const int64_t at = row * n;
            real* const part = parts.data() + row / kPieceRows * n;
            share_row(row, shares.data());
            for (int64_t j = 0; j < n; ++j) apart[j] = g[at + j] * (b[at + j] - a[at + j]);
            for (int64_t j = 0; j < n; ++j) part[j] += apart[j];
            if (of_more.defined()) std::copy_n(apart.data(), n, of_more.data() + at);
            for (int64_t j = 0; of_x.defined() && j < n; ++j)
              of_x[at + j] = g[at + j] * (1 - shares[j]);
            for (int64_t j = 0; of_other.defined() && j < n; ++j)
              of_other[at + j] = g[at + j] * shares[j];
          }
        });
        if (of_x.defined()) in[0].give(of_x);
        if (of_other.defined()) in[1].give(of_other);
        if (in[2].needed()) add_pieces(parts, 0, n, in[2].sum());
        if (of_more.defined()) in[3].give(of_more);
      });
}

}  // namespace attn
