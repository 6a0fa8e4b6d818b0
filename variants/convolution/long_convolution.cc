// Long convolutions; see long_convolution.h. Fourier transforms of the length n itself do, without
// zeros behind the sequence: multiplied by e^(πi·j/2n), what a cyclic convolution wraps around
// arrives a quarter of a turn on, as the imaginary part (the right-angle convolution of Crandall
// and Fagin 1994, Math. Comp. 62(205)). Distances below 0 are taps times -i at the end.
#include "variants/convolution/long_convolution.h"

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/convolution/fft.h"

namespace attn {
namespace {

constexpr int64_t kLanes = 16;          // channels of a task: a cache line of floats
constexpr int64_t kRows = 16;           // positions that are transposed at once on their way back
constexpr int64_t kSkew = 16;           // between arrays whose sizes are powers of two: other sets
constexpr int64_t kLongestDirect = 256;  // where both forms take about as long (Zen 4)

using Numbers = Eigen::Map<Eigen::Array<Complex, Eigen::Dynamic, 1>>;
using ConstNumbers = Eigen::Map<const Eigen::Array<Complex, Eigen::Dynamic, 1>>;

struct Problem {
  int64_t batch, heads, len, dim, taps;
  bool causal;
  std::vector<int64_t, Recycled<int64_t>> lengths;

  int64_t width() const { return heads * dim; }
  int64_t origin() const { return causal ? 0 : (taps - 1) / 2; }  // the filter's row of distance 0
  int64_t valid(int64_t entry) const {
    return lengths.empty() ? len : lengths[static_cast<size_t>(entry)];
  }
  int64_t strips() const { return (dim + kLanes - 1) / kLanes; }
  int64_t tasks() const { return heads * strips(); }
  bool is_direct(ConvolutionForm form) const {
    return form == ConvolutionForm::automatic ? len <= kLongestDirect
                                              : form == ConvolutionForm::direct;
  }
};

// Channels [first, first + lanes) of one head, of all batch entries.
struct Strip {
  const Problem& p;
  int64_t head, first, lanes;

  Strip(const Problem& problem, int64_t task)
      : p(problem),
        head(task / problem.strips()),
        first(task % problem.strips() * kLanes),
        lanes(std::min(kLanes, problem.dim - first)) {}
  int64_t at(int64_t entry) const { return (entry * p.heads + head) * p.len * p.dim + first; }
  int64_t column() const { return head * p.dim + first; }  // of filter and skip
};

struct Arrays {
  const real *x, *filter, *skip;  // skip may be null
};
struct Gradients {
  const real* of_out;
  real *x, *filter, *skip;  // null: not asked for
};

// ---- One sum after the other ----

// to[i] += Σ_j filter[origin + sign·(i - j)]·from[j], i, j < count.
void add_sums(const Strip& s, const real* filter, const real* from, int64_t count, int64_t sign,
              real* to, Tally& done) {
  const int64_t row = s.p.dim, step = s.p.width();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = s.p.causal && sign < 0 ? i : 0,
                  end = s.p.causal && sign > 0 ? i + 1 : count;
    real sums[kLanes] = {};
    for (int64_t j = begin; j < end; ++j) {
      const real* const tap = filter + (s.p.origin() + sign * (i - j)) * step + s.column();
      const real* const value = from + j * row;
      if (s.lanes == kLanes) {
        ATTN_INDEPENDENT
        for (int64_t c = 0; c < kLanes; ++c) sums[c] += tap[c] * value[c];
      } else {
        for (int64_t c = 0; c < s.lanes; ++c) sums[c] += tap[c] * value[c];
      }
    }
    for (int64_t c = 0; c < s.lanes; ++c) to[i * row + c] += sums[c];
    done.multiply_adds((end - begin) * s.lanes);
  }
}

void add_tap_sums(const Strip& s, const real* x, const real* g, int64_t count, real* filter,
                  Tally& done) {
  const int64_t row = s.p.dim, step = s.p.width();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = s.p.causal ? i + 1 : count;
    for (int64_t j = 0; j < end; ++j) {
      real* const tap = filter + (s.p.origin() + i - j) * step + s.column();
      for (int64_t c = 0; c < s.lanes; ++c) tap[c] += g[i * row + c] * x[j * row + c];
    }
    done.multiply_adds(end * s.lanes);
  }
}

void add_skipped(const Strip& s, const real* from, const real* skip, int64_t count, real* to) {
  for (int64_t i = 0; skip && i < count; ++i)
    for (int64_t c = 0; c < s.lanes; ++c)
      to[i * s.p.dim + c] += skip[s.column() + c] * from[i * s.p.dim + c];
}

void direct_forward(const Problem& p, const Arrays& a, real* out) {
  run_tasks(p.tasks(), 0, [&](int64_t task, real*) {
    const Mark mark(Part::products);
    const Strip s(p, task);
    Tally done;
    for (int64_t b = 0; b < p.batch; ++b) {
      add_sums(s, a.filter, a.x + s.at(b), p.valid(b), 1, out + s.at(b), done);
      add_skipped(s, a.x + s.at(b), a.skip, p.valid(b), out + s.at(b));
    }
  });
}

void direct_backward(const Problem& p, const Arrays& a, const Gradients& g) {
  run_tasks(p.tasks(), 0, [&](int64_t task, real*) {
    const Mark mark(Part::products);
    const Strip s(p, task);
    Tally done;
    for (int64_t b = 0; b < p.batch; ++b) {
      const int64_t valid = p.valid(b), at = s.at(b);
      if (g.x) {
        add_sums(s, a.filter, g.of_out + at, valid, -1, g.x + at, done);
        add_skipped(s, g.of_out + at, a.skip, valid, g.x + at);
      }
      if (g.filter) add_tap_sums(s, a.x + at, g.of_out + at, valid, g.filter, done);
      for (int64_t i = 0; g.skip && i < valid; ++i)
        for (int64_t c = 0; c < s.lanes; ++c)
          g.skip[s.column() + c] += g.of_out[at + i * p.dim + c] * a.x[at + i * p.dim + c];
    }
  });
}

// ---- By Fourier transforms ----

// What one worker holds: spectra of `kept` channels; of one channel, numbers and their spectrum; and
// the rows of a strip, an array a channel.
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
      : p_(p), at_(p.len, channels_kept), fft_(Fft::of(at_.length)) {}
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
      for (int64_t c = 0; c < lanes; ++c) std::copy_n(tile + c * kPanel, rows, channel(work, c) + i);
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
  const Problem& p_;
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

void check(const Var& x, const Var& filter, const Var& skip, bool causal) {
  const int64_t len = x.dim(2), width = x.dim(1) * x.dim(3);
  const bool fits = filter.shape().rank() == 2 && filter.dim(1) == width &&
                    (causal ? filter.dim(0) >= len
                            : filter.dim(0) % 2 == 1 && filter.dim(0) >= 2 * len - 1);
  ATTN_CHECK(fits, "a {} filter of {} for {}: expected [{}{}, {}]",
             causal ? "causal" : "two-sided", filter.shape().str(), x.shape().str(),
             causal ? "at least " : "an odd number, at least ", causal ? len : 2 * len - 1, width);
  ATTN_CHECK(!skip.defined() || skip.shape() == Shape({width}), "a skip of {} for {} channels",
             skip.defined() ? skip.shape().str() : "", width);
}

}  // namespace

ParamSpec convolution_form() {
  return {"form",
          {"auto", "direct", "fft"},
          "direct: one sum after the other; auto: direct up to 256 positions, then fft"};
}

ConvolutionForm form_of(const Params& params) {
  const std::string& form = params.text("form");
  if (form == "auto") return ConvolutionForm::automatic;
  return form == "fft" ? ConvolutionForm::fft : ConvolutionForm::direct;
}

Var long_convolution(const Var& x, const Var& filter, const Var& skip, const LongConvolution& how) {
  check(x, filter, skip, how.causal);
  const Problem p{x.dim(0),      x.dim(1),   x.dim(2), x.dim(3),
                  filter.dim(0), how.causal, {how.lengths.begin(), how.lengths.end()}};
  const bool is_direct = p.is_direct(how.form);
  const Tensor out = Tensor::zeros(x.shape());
  const Tensor skipped = skip.defined() ? skip.value() : Tensor();
  const Arrays arrays{x.value().data(), filter.value().data(), skipped.data()};
  is_direct ? direct_forward(p, arrays, out.data()) : fft_forward(p, arrays, out.data());
  const auto backward = [p, is_direct, from = x.value(), taps = filter.value(), skipped](
                            const Tensor& grad, std::span<Tensor> grads) {
    const Arrays a{from.data(), taps.data(), skipped.data()};
    const Gradients g{grad.data(), grads[0].data(), grads[1].data(),
                      grads.size() > 2 ? grads[2].data() : nullptr};
    if (is_direct) return direct_backward(p, a, g);
    if (g.x) add_input_gradient(p, a, g);
    if (g.filter || g.skip) add_filter_gradient(p, a, g);
  };
  if (skip.defined()) return custom_op(out, {x, filter, skip}, backward);
  return custom_op(out, {x, filter}, backward);
}

Cost long_convolution_cost(const AttentionShape& s, const LongConvolution& how) {
  const Problem p{s.batch, s.heads,    s.kv_len, s.head_dim, how.causal ? s.kv_len : 2 * s.kv_len - 1,
                  how.causal, {}};
  const auto channels = static_cast<double>(p.width()), batch = static_cast<double>(s.batch),
             len = static_cast<double>(s.kv_len), numbers = batch * channels * len;
  Cost cost{.bytes = sizeof(real) * (2 * numbers + channels * static_cast<double>(p.taps)),
            .peak_bytes = sizeof(real) * numbers,
            .state_bytes = sizeof(real) * numbers};
  if (p.is_direct(how.form)) {
    cost.flops = batch * channels * (how.causal ? len * (len + 1) : 2 * len * len);
    return cost;
  }
  const double transform = fft_flops(fast_length(s.kv_len));
  cost.flops = channels * transform * (1 + 2 * batch);
  cost.backward_flops = channels * transform * (2 + 4 * batch);
  cost.peak_bytes += static_cast<double>(workspace_bytes(p.tasks(), Layout(p.len, kLanes).total));
  return cost;
}

}  // namespace attn
