// Two real channels are one complex sequence, and half of the spectrum of a real sequence is the
// mirror of the other half: rows p and n - p of the output come from one transform along the
// channels. The sum is symmetric in input and output, so the gradient is the same transform. See
// fourier_mixing.h.
#include "variants/synthetic/fourier_mixing.h"

#include <algorithm>
#include <vector>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "variants/convolution/convolution.h"

namespace attn {
namespace {

constexpr int64_t kPairs = 8;  // of channels in a task: a cache line of floats
constexpr int64_t kSkew = 16;  // between arrays whose sizes are powers of two: other cache sets
constexpr int64_t kFourierRows = 16;  // rows of the spectrum in a task

struct Mixing {
  int64_t len, width;

  int64_t half() const { return len / 2 + 1; }  // rows of the spectrum
  int64_t row() const { return padded_reals(2 * width) + kSkew; }
  int64_t pairs() const { return (width + 1) / 2; }
  int64_t strips() const { return (pairs() + kPairs - 1) / kPairs; }
  int64_t blocks() const { return (half() + kFourierRows - 1) / kFourierRows; }
  int64_t spectrum_reals() const { return half() * row(); }
  int64_t column_reals() const { return padded_reals(2 * len) + kSkew; }
  int64_t strip_reals() const { return (kPairs + 1) * column_reals(); }
  double flops() const {
    return static_cast<double>(pairs()) * fft_flops(len) +
           static_cast<double>(half()) * fft_flops(width);
  }
};

class Pass {
 public:
  Pass(const Mixing& m, real* spectrum)
      : m_(m), along_(Fft::of(m.len)), across_(Fft::of(m.width)), spectrum_(spectrum) {}

  // out (+)= the mixed rows.
  void run(const real* x, real* out, bool accumulate) const {
    run_tasks(m_.strips(), m_.strip_reals(),
              [&](int64_t task, real* work) { transform_strip(x, task * kPairs, work); });
    run_tasks(m_.blocks(), m_.row(), [&](int64_t task, real* work) {
      const Mark mark(Part::products);
      const int64_t end = std::min(m_.half(), (task + 1) * kFourierRows);
      for (int64_t p = task * kFourierRows; p < end; ++p) mix_row(p, out, accumulate, work);
    });
    count_flops(m_.flops());
  }

 private:
  Complex* at(int64_t p, int64_t channel) const {
    return reinterpret_cast<Complex*>(spectrum_ + p * m_.row()) + channel;
  }

  void transform_strip(const real* x, int64_t first, real* work) const {
    const int64_t pairs = std::min(kPairs, m_.pairs() - first), n = m_.len;
    const auto column = [&](int64_t pair) {
      return reinterpret_cast<Complex*>(work + pair * m_.column_reals());
    };
    {
      const Mark mark(Part::gathering);
      for (int64_t i = 0; i < n; i += kFourierRows)
        for (int64_t pair = 0; pair < pairs; ++pair) {
          const int64_t c = 2 * (first + pair), end = std::min(n, i + kFourierRows);
          const bool is_whole = c + 1 < m_.width;
          Complex* const to = column(pair);
          for (int64_t r = i; r < end; ++r) {
            const real* const from = x + r * m_.width + c;
            to[r] = {from[0], is_whole ? from[1] : real(0)};
          }
        }
    }
    Complex* const result = column(kPairs);
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const Mark mark(Part::products);
      along_->forward(column(pair), result);
      std::copy_n(result, n, column(pair));
    }
    separate(first, pairs, column);
  }

  // Z = A + i·B with A and B of real sequences: A_p = (Z_p + Z*_{n-p}) / 2, B_p = (Z_p - Z*_{n-p})
  // / 2i.
  template <class Column>
  void separate(int64_t first, int64_t pairs, const Column& column) const {
    const Mark mark(Part::gathering);
    for (int64_t begin = 0; begin < m_.half(); begin += kFourierRows)
      for (int64_t pair = 0; pair < pairs; ++pair) {
        const Complex* const from = column(pair);
        const int64_t c = 2 * (first + pair), end = std::min(m_.half(), begin + kFourierRows);
        const bool is_whole = c + 1 < m_.width;
        for (int64_t p = begin; p < end; ++p) {
          const Complex z = from[p], m = from[p == 0 ? 0 : m_.len - p];
          Complex* const to = at(p, c);
          to[0] = {(z.real() + m.real()) / 2, (z.imag() - m.imag()) / 2};
          if (is_whole) to[1] = {(z.imag() + m.imag()) / 2, (m.real() - z.real()) / 2};
        }
      }
  }

  void mix_row(int64_t p, real* out, bool accumulate, real* work) const {
    const int64_t width = m_.width, mirror = m_.len - p;
    Complex* const mixed = reinterpret_cast<Complex*>(work);
    across_->forward(at(p, 0), mixed);
    real* const to = out + p * width;
    for (int64_t r = 0; r < width; ++r) to[r] = (accumulate ? to[r] : real(0)) + mixed[r].real();
    if (p == 0 || mirror == p) return;
    real* const back = out + mirror * width;
    for (int64_t r = 0; r < width; ++r)
      back[r] = (accumulate ? back[r] : real(0)) + mixed[r == 0 ? 0 : width - r].real();
  }

  const Mixing& m_;
  std::shared_ptr<const Fft> along_, across_;
  real* spectrum_;
};

void mix_entries(const Shape& shape, std::span<const int64_t> lengths, const real* x, real* out,
                 bool accumulate) {
  const Mixing longest{shape[1], shape[2]};
  const Block spectrum(static_cast<size_t>(longest.spectrum_reals()) * sizeof(real),
                       Purpose::workspace);
  for (int64_t b = 0; b < shape[0]; ++b) {
    const Mixing m{lengths.empty() ? shape[1] : lengths[static_cast<size_t>(b)], shape[2]};
    const int64_t first = b * shape[1] * shape[2];
    if (m.len > 0)
      Pass(m, static_cast<real*>(spectrum.data())).run(x + first, out + first, accumulate);
  }
}

}  // namespace

Var fourier_mixing(const Var& x, std::span<const int64_t> lengths) {
  const Shape shape = x.shape();
  const Tensor out = lengths.empty() ? Tensor(shape) : Tensor::zeros(shape);
  mix_entries(shape, lengths, x.value().data(), out.data(), false);
  return custom_op(
      out, {x},
      [shape, valid = std::vector<int64_t, Recycled<int64_t>>(lengths.begin(), lengths.end())](
          const Tensor& grad, std::span<Tensor> grads) {
        if (grads[0].defined()) mix_entries(shape, valid, grad.data(), grads[0].data(), true);
      });
}

Cost fourier_mixing_cost(int64_t batch, int64_t len, int64_t width) {
  const Mixing m{len, width};
  const auto numbers = static_cast<double>(len * width), entries = static_cast<double>(batch);
  const double work =
      std::max(workspace_bytes(m.strips(), m.strip_reals()), workspace_bytes(m.blocks(), m.row()));
  return {
      .flops = entries * m.flops(),
      .backward_flops = entries * m.flops(),
      .bytes = sizeof(real) * entries * (2 * numbers + 2 * static_cast<double>(m.spectrum_reals())),
      .peak_bytes =
          sizeof(real) * (entries * numbers + static_cast<double>(m.spectrum_reals())) + work};
}

}  // namespace attn
