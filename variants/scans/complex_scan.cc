// Forward and backward, a batch entry at a time; see complex_scan.h. The states of every position
// are the output: nothing is computed again.
#include "variants/scans/complex_scan.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "core/simd/scan_rows.h"
#include "variants/api/mixer.h"

namespace attn {
namespace {

struct Scan {
  Tensor x, taps, out;
  int64_t batch, len, states;
  std::vector<int64_t> lengths;

  int64_t valid(int64_t b) const { return lengths.empty() ? len : lengths[static_cast<size_t>(b)]; }
  ComplexRows rows(int64_t b) const {
    const real* const a = taps.data();
    return {valid(b), states, a, a + states, a + 2 * states};
  }
};

// Adds what g, the gradient of scaled inputs of one batch entry, means for the taps.
void add_taps(const Scan& s, int64_t b, const real* g, double* sums) {
  const int64_t n = s.states, row = 2 * n;
  const real *const x = s.x.data() + b * s.len * row, *const h = s.out.data() + b * s.len * row;
  for (int64_t t = 0; t < s.valid(b); ++t) {
    const real *const gt = g + t * row, *const xt = x + t * row;
    const real* const before = t > 0 ? h + (t - 1) * row : nullptr;
    for (int64_t j = 0; j < n; ++j) {
      if (before) {
        sums[j] += static_cast<double>(gt[j] * before[j] + gt[n + j] * before[n + j]);
        sums[n + j] += static_cast<double>(gt[n + j] * before[j] - gt[j] * before[n + j]);
      }
      sums[2 * n + j] += static_cast<double>(gt[j] * xt[j] + gt[n + j] * xt[n + j]);
    }
  }
}

void complex_backward(const Scan& s, const Tensor& grad_out, std::span<Tensor> grads) {
  const int64_t n = s.states, row = 2 * n;
  const Tensor g(grad_out.shape());
  std::vector<double, Recycled<double>> sums(static_cast<size_t>(s.batch * 3 * n));
  over_range(s.batch, s.len * row, [&](int64_t begin, int64_t end) {
    const Mark mark(Part::recurrence);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t at = b * s.len * row;
      std::copy_n(grad_out.data() + at, s.valid(b) * row, g.data() + at);
      scan_complex_backward(s.rows(b), g.data() + at);
      add_taps(s, b, g.data() + at, sums.data() + b * 3 * n);
      count_flops(static_cast<double>(kComplexBackwardFlops * s.valid(b) * n));
      if (!grads[0].defined()) continue;
      for (int64_t i = 0; i < s.valid(b) * row; ++i)
        grads[0][at + i] += s.taps[2 * n + i % n] * g[at + i];
    }
  });
  if (!grads[1].defined()) return;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t i = 0; i < 3 * n; ++i)
      grads[1][i] += static_cast<real>(sums[static_cast<size_t>(b * 3 * n + i)]);
}

// The states of all sequences of the batch.
class ComplexDecoder final : public MixerDecoder {
 public:
  ComplexDecoder(const Shape& position, int64_t capacity, ComplexWeights weights)
      : MixerDecoder(position, capacity),
        weights_(std::move(weights)),
        states_(Tensor::zeros({batch(), row()})),
        rows_({batch(), row()}) {}

 private:
  int64_t row() const { return weights_.input.dim(1); }  // 2·states

  void do_next(const real* x, real* out) override {
    const int64_t n = row() / 2, dim = width();
    const real* const taps = weights_.taps.data();
    product(batch(), row(), dim, {x, dim}, {weights_.input.data(), row()}, rows_.data(), row());
    for (int64_t b = 0; b < batch(); ++b)
      scan_complex({1, n, taps, taps + n, taps + 2 * n}, rows_.data() + b * row(),
                   states_.data() + b * row(), states_.data() + b * row());
    if (out)
      product(batch(), dim, row(), {states_.data(), row()}, {weights_.output.data(), dim}, out,
              dim);
    Tally done;
    done.multiply_adds(batch() * dim * row() * (out ? 2 : 1));
    done.other_flops(batch() * n * kComplexFlops);
    done.moved<real>(moved());
  }
  int64_t moved() const {
    return 2 * states_.size() + weights_.input.size() + weights_.output.size();
  }
  int64_t do_state_bytes() const override {
    return states_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    return static_cast<double>(batch() * (4 * width() * row() + kComplexFlops * row() / 2));
  }
  double do_step_bytes() const override { return sizeof(real) * static_cast<double>(moved()); }

  ComplexWeights weights_;
  Tensor states_, rows_;  // [batch, 2·states]
};

}  // namespace

Var complex_scan(const Var& x, const Var& taps, const std::vector<int64_t>& lengths) {
  ATTN_CHECK(x.shape().rank() == 3 && taps.shape() == Shape({3, x.dim(2) / 2}),
             "complex scan: taps {} beside x {}", taps.shape().str(), x.shape().str());
  Scan s{x.value(), taps.value(), Tensor(x.shape()), x.dim(0), x.dim(1), x.dim(2) / 2, lengths};
  const int64_t row = 2 * s.states;
  over_range(s.batch, s.len * row, [&](int64_t begin, int64_t end) {
    const Mark mark(Part::recurrence);
    for (int64_t b = begin; b < end; ++b) {
      real* const out = s.out.data() + b * s.len * row;
      scan_complex(s.rows(b), s.x.data() + b * s.len * row, nullptr, out);
      std::fill(out + s.valid(b) * row, out + s.len * row, real(0));
      count_flops(static_cast<double>(kComplexFlops * s.valid(b) * s.states));
    }
  });
  count_bytes(sizeof(real) * static_cast<double>(2 * s.out.size() + taps.value().size()));
  const Tensor out = s.out;
  if (!recording({x, taps})) return Var(out);
  return custom_op(out, {x, taps}, [s](const Tensor& grad_out, std::span<Tensor> grads) {
    complex_backward(s, grad_out, grads);
  });
}

std::unique_ptr<Decoder> complex_decoder(const Shape& position, int64_t capacity,
                                         ComplexWeights weights) {
  return std::make_unique<ComplexDecoder>(position, capacity, std::move(weights));
}

}  // namespace attn
