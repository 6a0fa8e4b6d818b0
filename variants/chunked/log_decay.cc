// See log_decay.h.
#include "variants/chunked/log_decay.h"

#include <algorithm>
#include <cmath>

#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr real kForgetsAll = 10;  // exp(-e^10) is 0 in either precision; beyond, e^x overflows

}  // namespace

HeadDecay::HeadDecay(const LogDecay& rule, int64_t head)
    : of(rule.of), sign(static_cast<real>(rule.sign)), factor(static_cast<real>(rule.factor)) {
  if (rule.rates.defined()) factor *= std::exp(rule.rates.value()[head]);
}

void HeadDecay::values(int64_t n, const real* x, real* y) const {
  if (of == LogDecay::Of::softplus) return softplus_row(n, x, sign, factor, y);
  if (of == LogDecay::Of::exponential) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::min(sign * x[i], kForgetsAll);
    exp_row(n, y, 1, 0, y);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = sign * x[i];
    sigmoid_row(n, y, y);
  }
  for (int64_t i = 0; i < n; ++i) y[i] *= factor;
}

void HeadDecay::slopes(int64_t n, const real* x, real* slope) const {
  if (of == LogDecay::Of::exponential) {
    values(n, x, slope);
    for (int64_t i = 0; i < n; ++i) slope[i] *= sign;
    return;
  }
  for (int64_t i = 0; i < n; ++i) slope[i] = sign * x[i];
  sigmoid_row(n, slope, slope);
  if (of == LogDecay::Of::sigmoid)
    for (int64_t i = 0; i < n; ++i) slope[i] *= 1 - slope[i];
  for (int64_t i = 0; i < n; ++i) slope[i] *= sign * factor;
}

}  // namespace attn
