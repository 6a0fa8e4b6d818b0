// A long convolution by Fourier transforms; see long_convolution.h. Transforms of the length n
// itself do, without zeros behind the sequence: multiplied by e^(πi·j/2n), what a cyclic
// convolution wraps around arrives a quarter of a turn on, as the imaginary part (the right-angle
// convolution of Crandall and Fagin 1994, Math. Comp. 62(205)). Distances below 0 are taps times -i
// at the end.
#include <Eigen/Core>
#include <algorithm>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "variants/convolution/convolution_strips.h"
#include "variants/convolution/fft.h"

namespace attn::long_convolutions {
namespace {

constexpr int64_t kRows = 16;  // positions that are transposed at once on their way back
constexpr int64_t kSkew = 16;  // between arrays whose sizes are powers of two: other sets
using Numbers = Eigen::Map<Eigen::Array<Complex, Eigen::Dynamic, 1>>;
using ConstNumbers = Eigen::Map<const Eigen::Array<Complex, Eigen::Dynamic, 1>>;

// What one worker holds: spectra of `kept` channels; of one channel, numbers and their spectrum;
// and the rows of a strip, an array a channel.
struct Layout {
  int64_t length, row, kept = 0, numbers, spectrum, rows, channel, total;

  Layout(int64_t len, int64_t channels_kept)
      : length(fast_length(len)), row(padded_reals(2 * length) + kSkew) {
    numbers = channels_kept * row;
    spectrum = numbers + row;
    rows = spectrum + row;
    channel = padded_reals(len) + kSkew;
    total = rows + kLanes * channel;
  }
};

class Transforms {
 public:
  Transforms(const Problem& p, int64_t channels_kept)
      : at_(p.len, channels_kept), fft_(Fft::of(at_.length)) {}
  int64_t reals() const { return at_.total; }
  int64_t length() const { return at_.length; }

  Complex* kept(real* work, int64_t channel) const {
    return reinterpret_cast<Complex*>(work + at_.kept + channel * at_.row);
  }
  Complex* numbers(real* work) const { return reinterpret_cast<Complex*>(work + at_.numbers); }
  Complex* spectrum(real* work) const { return reinterpret_cast<Complex*>(work + at_.spectrum); }
  real* channel(real* work, int64_t c) const { return work + at_.rows + c * at_.channel; }

  // Rows of `from`, `stride` apart, as one array a channel, and back, added to the rows of `to`.
  void gather(const real* from, int64_t stride, int64_t lanes, int64_t count, real* work) const {
    const Mark mark(Part::gathering);
    real tile[kLanes * kPanel];
    for (int64_t i = 0; i < count; i += kPanel) {
      const int64_t rows = std::min(kPanel, count - i);
      pack_transposed(from + i * stride, rows, lanes, stride, tile);
      for (int64_t c = 0; c < lanes; ++c)
        std::copy_n(tile + c * kPanel, rows, channel(work, c) + i);
    }
  }
  void add_rows(real* work, int64_t lanes, int64_t count, real* to, int64_t stride) const {
    const Mark mark(Part::gathering);
    real tile[kRows * kPanel];
    for (int64_t i = 0; i < count; i += kRows) {
      const int64_t rows = std::min(kRows, count - i);
      pack_transposed(channel(work, 0) + i, lanes, rows, at_.channel, tile);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < lanes; ++c) to[(i + r) * stride + c] += tile[r * kPanel + c];
    }
  }

  // The spectrum of a channel's first `count` numbers.
  void transform(real* work, int64_t c, int64_t count, Complex* to) const {
    const Eigen::Map<const Eigen::Array<real, Eigen::Dynamic, 1>> from(channel(work, c), count);
    Numbers(numbers(work), count) = ConstNumbers(fft_->quarter_turn().data(), count) * from;
    std::fill(numbers(work) + count, numbers(work) + length(), Complex(0));
    fft_->forward(numbers(work), to);
    count_flops(fft_flops(length()));
  }
  // In place: from the filter of channel c, where real parts are taps of distances from 0 on, and
  // imaginary parts, from the end on, those of distances below 0, to its spectrum over the length.
  void transform_filter(real* work, int64_t c) const {
    const real share = real(1) / static_cast<real>(length());
    Numbers(numbers(work), length()) = ConstNumbers(kept(work, c), length()) *
                                       ConstNumbers(fft_->quarter_turn().data(), length()) * share;
    fft_->forward(numbers(work), kept(work, c));
    count_flops(fft_flops(length()));
  }
  // The numbers of a spectrum, turned back: the real part is the convolution.
  const Complex* turned_back(real* work, const Complex* spectrum) const {
    fft_->backward(spectrum, numbers(work));
    count_flops(fft_flops(length()));
    Numbers(numbers(work), length()) *=
        ConstNumbers(fft_->quarter_turn().data(), length()).conjugate();
    return numbers(work);
  }
  void convolve(real* work, const Complex* spectrum, int64_t c, int64_t count) const {
    const Complex* const numbers = turned_back(work, spectrum);
    Eigen::Map<Eigen::Array<real, Eigen::Dynamic, 1>>(channel(work, c), count) =
        ConstNumbers(numbers, count).real();
  }

 private:
  Layout at_;
  std::shared_ptr<const Fft> fft_;
};

void transform_filters(const Transforms& t, const Strip& s, const Arrays& a, real* work) {
  const Problem& p = s.p;
  const real* const origin = a.filter + p.origin() * p.width() + s.column();
  const int64_t before = p.causal ? 0 : p.len - 1;  // taps of distances below 0
  t.gather(origin, p.width(), s.lanes, p.len, work);
  for (int64_t c = 0; c < s.lanes; ++c) {
    const real* const taps = t.channel(work, c);
    for (int64_t d = 0; d < t.length(); ++d) t.kept(work, c)[d] = d < p.len ? taps[d] : real(0);
    if (a.skip) t.kept(work, c)[0] += a.skip[s.column() + c];
  }
  t.gather(origin - before * p.width(), p.width(), s.lanes, before, work);
  for (int64_t c = 0; c < s.lanes; ++c) {
    const real* const taps = t.channel(work, c);
    Complex* const to = t.kept(work, c) + t.length() - before;
    for (int64_t d = 0; d < before; ++d) to[d].imag(-taps[d]);
    t.transform_filter(work, c);
  }
}

// out = Re(M(filter)·x) with M = turn back · F⁻¹ · diag · F · turn: the gradient of x is the same
// with the conjugate spectrum.
void add_input_gradient(const Problem& p, const Arrays& a, const Gradients& g) {
  const Transforms t(p, kLanes);
  run_tasks(p.tasks(), t.reals(), [&](int64_t task, real* work) {
    const Mark mark(Part::products);
    const Strip s(p, task);
    transform_filters(t, s, a, work);
    for (int64_t b = 0; b < p.batch; ++b) {
      t.gather(g.of_out + s.at(b), p.dim, s.lanes, p.valid(b), work);
      for (int64_t c = 0; c < s.lanes; ++c) {
        t.transform(work, c, p.valid(b), t.spectrum(work));
        Numbers(t.spectrum(work), t.length()) *=
            ConstNumbers(t.kept(work, c), t.length()).conjugate();
        t.convolve(work, t.spectrum(work), c, p.valid(b));
      }
      t.add_rows(work, s.lanes, p.valid(b), g.x + s.at(b), p.dim);
    }
  });
}

// A convolution commutes: the gradient of the filter is that of an input which x convolves. The
// spectra of all batch entries are added before the one transform back. The imaginary part is of
// the taps of negative distance, which enter times -i.
void add_filter_gradient(const Problem& p, const Arrays& a, const Gradients& g) {
  const Transforms t(p, 2 * kLanes);
  const real share = real(1) / static_cast<real>(t.length());
  run_tasks(p.tasks(), t.reals(), [&](int64_t task, real* work) {
    const Mark mark(Part::products);
    const Strip s(p, task);
    for (int64_t c = 0; c < s.lanes; ++c) Numbers(t.kept(work, c), t.length()) = Complex(0);
    for (int64_t b = 0; b < p.batch; ++b) {
      t.gather(a.x + s.at(b), p.dim, s.lanes, p.valid(b), work);
      for (int64_t c = 0; c < s.lanes; ++c)
        t.transform(work, c, p.valid(b), t.kept(work, kLanes + c));
      t.gather(g.of_out + s.at(b), p.dim, s.lanes, p.valid(b), work);
      for (int64_t c = 0; c < s.lanes; ++c) {
        t.transform(work, c, p.valid(b), t.spectrum(work));
        Numbers(t.kept(work, c), t.length()) +=
            ConstNumbers(t.kept(work, kLanes + c), t.length()).conjugate() *
            ConstNumbers(t.spectrum(work), t.length());
      }
    }
    for (int64_t c = 0; c < s.lanes; ++c) {
      const Complex* const numbers = t.turned_back(work, t.kept(work, c));
      std::copy_n(numbers, t.length(), t.kept(work, c));
      if (g.skip) g.skip[s.column() + c] += share * numbers[0].real();
      for (int64_t d = 0; d < p.len; ++d) t.channel(work, c)[d] = share * numbers[d].real();
    }
    if (!g.filter) return;
    const int64_t before = p.causal ? 0 : p.len - 1;
    real* const origin = g.filter + p.origin() * p.width() + s.column();
    t.add_rows(work, s.lanes, p.len, origin, p.width());
    for (int64_t c = 0; c < s.lanes; ++c) {
      const Complex* const from = t.kept(work, c) + t.length() - before;
      for (int64_t d = 0; d < before; ++d) t.channel(work, c)[d] = -share * from[d].imag();
    }
    t.add_rows(work, s.lanes, before, origin - before * p.width(), p.width());
  });
}

}  // namespace

int64_t fft_workspace_reals(int64_t len) { return Layout(len, kLanes).total; }

void fft_forward(const Problem& p, const Arrays& a, real* out) {
  const Transforms t(p, kLanes);
  run_tasks(p.tasks(), t.reals(), [&](int64_t task, real* work) {
    const Mark mark(Part::products);
    const Strip s(p, task);
    transform_filters(t, s, a, work);
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t valid = p.valid(b);
      t.gather(a.x + s.at(b), p.dim, s.lanes, valid, work);
      for (int64_t c = 0; c < s.lanes; ++c) {
        t.transform(work, c, valid, t.spectrum(work));
        Numbers(t.spectrum(work), t.length()) *= ConstNumbers(t.kept(work, c), t.length());
        t.convolve(work, t.spectrum(work), c, valid);
      }
      t.add_rows(work, s.lanes, valid, out + s.at(b), p.dim);
    }
  });
}

void fft_backward(const Problem& p, const Arrays& a, const Gradients& g) {
  if (g.x) add_input_gradient(p, a, g);
  if (g.filter || g.skip) add_filter_gradient(p, a, g);
}

}  // namespace attn::long_convolutions
