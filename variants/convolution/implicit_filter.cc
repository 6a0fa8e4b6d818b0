// The network is composed from ops; sine and window are ops of their own. See implicit_filter.h.
#include "variants/convolution/implicit_filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/ops/ops.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

// e^(-|t|·δ) falls to 0.01 within 0.3 of the longest distance in the fastest channel, and within
// 1.5 of it in the slowest, evenly between: the paper's code.
constexpr double kTarget = 0.01, kFast = 0.3, kSlow = 1.5;

real rate(int64_t channel, int64_t width) {
  const double fast = -std::log(kTarget) / kFast, slow = -std::log(kTarget) / kSlow;
  const double part = width > 1 ? static_cast<double>(channel) / static_cast<double>(width - 1) : 0;
  return static_cast<real>(slow + part * (fast - slow));
}

// sin and cos of x up to about 1e6: x less the nearest multiple of π, and Taylor's series within
// ±π/2, to terms below the last place. Unlike std::sin it is vectorised.
constexpr int kTerms = kIsDouble ? 11 : 6;

constexpr std::array<real, kTerms + 1> series(int first) {  // 1/first!, -1/(first + 2)!, ...
  std::array<real, kTerms + 1> result{};
  double term = 1;
  for (int i = 0; i <= kTerms; ++i) {
    result[static_cast<size_t>(i)] = static_cast<real>(term);
    const int next = first + 2 * i;
    term /= -static_cast<double>((next + 1) * (next + 2));
  }
  return result;
}

struct Angle {
  real part, square, sign;
};
inline Angle reduced(real x) {
  constexpr double kPi = std::numbers::pi;
  constexpr auto kHigh = static_cast<real>(3.140625);  // few digits: its multiples are exact
  constexpr auto kLow = static_cast<real>(kPi - 3.140625);
  const real turns = std::nearbyint(x * static_cast<real>(1 / kPi));
  const real part = (x - turns * kHigh) - turns * kLow;
  const real odd = turns - 2 * std::floor(turns * real(0.5));
  return {part, part * part, 1 - 2 * odd};
}
inline real polynomial(const std::array<real, kTerms + 1>& terms, real x) {
  real sum = terms[kTerms];
  for (int i = kTerms; i-- > 0;) sum = sum * x + terms[static_cast<size_t>(i)];
  return sum;
}

void sine_row(int64_t n, const real* x, real* to) {
  static constexpr auto kSine = series(1);
  ATTN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Angle a = reduced(x[i]);
    to[i] = a.sign * a.part * polynomial(kSine, a.square);
  }
}
void add_cosine_times(int64_t n, const real* x, const real* g, real* to) {
  static constexpr auto kCosine = series(0);
  ATTN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    const Angle a = reduced(x[i]);
    to[i] += g[i] * a.sign * polynomial(kCosine, a.square);
  }
}

Var sine(const Var& x) {
  const Tensor out(x.shape());
  over_range(x.shape().size(), 8, [&](int64_t begin, int64_t end) {
    sine_row(end - begin, x.value().data() + begin, out.data() + begin);
  });
  return custom_op(out, {x}, [from = x.value()](const Tensor& grad, std::span<Tensor> grads) {
    if (!grads[0].defined()) return;
    over_range(from.size(), 8, [&](int64_t begin, int64_t end) {
      add_cosine_times(end - begin, from.data() + begin, grad.data() + begin,
                       grads[0].data() + begin);
    });
  });
}

struct DecayWindow {
  int64_t first, longest;
  Tensor rates;  // [width]

  double part(int64_t row) const {  // of the longest distance
    return static_cast<double>(first + row) / static_cast<double>(std::max<int64_t>(1, longest));
  }
  // to += or = e^(-|t|·rate) ⊙ from
  void apply(const Tensor& from, const Tensor& to, bool accumulate) const {
    const int64_t width = from.dim(1);
    over_range(from.dim(0), 8 * width, [&](int64_t begin, int64_t end) {
      const Block block(static_cast<size_t>(width) * sizeof(real), Purpose::workspace);
      real* const window = static_cast<real*>(block.data());
      for (int64_t t = begin; t < end; ++t) {
        exp_row(width, rates.data(), static_cast<real>(-std::abs(part(t))), 0, window);
        const real* const x = from.data() + t * width;
        real* const y = to.data() + t * width;
        for (int64_t c = 0; c < width; ++c) y[c] = (accumulate ? y[c] : real(0)) + window[c] * x[c];
      }
    });
  }
};

Var windowed(const Var& taps, const DecayWindow& window) {
  const Tensor out(taps.shape());
  window.apply(taps.value(), out, false);
  return custom_op(out, {taps}, [window](const Tensor& grad, std::span<Tensor> grads) {
    if (grads[0].defined()) window.apply(grad, grads[0], true);
  });
}

Tensor encoded(int64_t first, int64_t count, int64_t longest, int64_t inputs) {
  const Tensor rows({count, inputs});
  for (int64_t t = 0; t < count; ++t) {
    const auto at = static_cast<double>(first + t);
    rows[t * inputs] = static_cast<real>(at / static_cast<double>(std::max<int64_t>(1, longest)));
    for (int64_t k = 1; 2 * k < inputs; ++k) {
      const double angle =
          2 * std::numbers::pi * static_cast<double>(k) * at / static_cast<double>(longest + 1);
      rows[t * inputs + 2 * k - 1] = static_cast<real>(std::cos(angle));
      rows[t * inputs + 2 * k] = static_cast<real>(std::sin(angle));
    }
  }
  return rows;
}

}  // namespace

Var filter_taps(const ImplicitFilter& filter, int64_t first, int64_t count) {
  Var rows(encoded(first, count, filter.longest, filter.layers.front().weight.dim(0)));
  for (const ImplicitFilter::Layer& layer : filter.layers) {
    rows = linear(rows, layer.weight, layer.bias);
    rows = multiply(rows, filter.frequency);
    rows = sine(rows);
  }
  const int64_t width = filter.out.dim(1);
  const Tensor rates({width});
  for (int64_t c = 0; c < width; ++c) rates[c] = rate(c, width);
  const Var taps = linear(rows, filter.out, {});
  rows = Var();  // without gradients, nobody reads it again
  return windowed(taps, {first, filter.longest, rates});
}

double filter_flops(const FilterSize& size) {
  const auto hidden = static_cast<double>(size.hidden);
  return 2 * static_cast<double>(size.taps) * hidden *
         (static_cast<double>(filter_inputs(size.bands) + size.width) +
          hidden * static_cast<double>(size.layers - 1));
}

double filter_peak_bytes(const FilterSize& size) {
  const int64_t width = size.width, hidden = size.hidden;
  return sizeof(real) *
         static_cast<double>(std::max({size.taps * 2 * width,
                                       size.taps * (width + hidden) + packed_reals(width, hidden),
                                       size.taps * 2 * hidden + packed_reals(hidden, hidden)}));
}

}  // namespace attn
