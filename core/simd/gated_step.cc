// One source, compiled by Highway for each instruction set; see gated_step.h.
#include "core/simd/gated_step.h"

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/gated_step.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/one_less_exp.h"
#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

// The gain √(1 - e^(-2·step)) and its derivative.
struct Gain {
  Vector gain, slope;
  HWY_INLINE explicit Gain(Vector step) {
    const OneLessExp square(hn::Add(step, step));
    gain = hn::Sqrt(square.lost);
    slope = hn::Div(square.left, gain);
  }
};

template <class Part>
HWY_INLINE void add_to(Part part, Vector x, real* to) {
  part.store(hn::Add(part.load(to), x), to);
}

// x·(1 - x)
HWY_INLINE Vector sigmoid_slope(Vector x) { return hn::NegMulAdd(x, x, x); }

void steps(int64_t n, const real* rates, const real* gates, real* to) {
  over_row(n, [=](int64_t j, auto part) HWY_ATTR {
    const Vector step = hn::Mul(part.load(rates + j), sigmoid_of(part.load(gates + j)));
    const Vector least = all_of(kLeastStep);
    part.store(hn::IfThenElse(hn::Lt(step, least), least, step), to + j);  // NaN stays
  });
}

void steps_backward(int64_t n, const real* rates, const real* gates, const real* grads,
                    real* gate_grads, real* rate_grads) {
  over_row(n, [=](int64_t j, auto part) HWY_ATTR {
    const Vector rate = part.load(rates + j), open = sigmoid_of(part.load(gates + j));
    const auto is_least = hn::Lt(hn::Mul(rate, open), all_of(kLeastStep));
    const Vector g = hn::IfThenZeroElse(is_least, part.load(grads + j));
    add_to(part, hn::Mul(hn::Mul(g, rate), sigmoid_slope(open)), gate_grads + j);
    add_to(part, hn::Mul(g, open), rate_grads + j);
  });
}

void inputs(int64_t n, const GatedInput& row, real* to) {
  over_row(n, [&](int64_t j, auto part) HWY_ATTR {
    const Vector step = part.load(row.steps + j), open = sigmoid_of(part.load(row.gates + j));
    const Vector gain = row.is_first ? all_of(1) : Gain(step).gain;
    part.store(hn::Div(hn::Mul(hn::Mul(gain, open), part.load(row.x + j)), step), to + j);
  });
}

void inputs_backward(int64_t n, const GatedInput& row, const real* grads, real* x_grads,
                     real* gate_grads, real* step_grads) {
  over_row(n, [&](int64_t j, auto part) HWY_ATTR {
    const Vector step = part.load(row.steps + j), open = sigmoid_of(part.load(row.gates + j)),
                 x = part.load(row.x + j), of = hn::Div(part.load(grads + j), step);
    Vector gain = all_of(1), slope = all_of(0);
    if (!row.is_first) {
      const Gain of_step(step);
      gain = of_step.gain;
      slope = of_step.slope;
    }
    const Vector of_x = hn::Mul(of, gain);
    add_to(part, hn::Mul(of_x, open), x_grads + j);
    add_to(part, hn::Mul(hn::Mul(of_x, x), sigmoid_slope(open)), gate_grads + j);
    add_to(part, hn::Mul(hn::Mul(of, open), hn::Mul(x, hn::Sub(slope, hn::Div(gain, step)))),
           step_grads + j);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(steps);
HWY_EXPORT(steps_backward);
HWY_EXPORT(inputs);
HWY_EXPORT(inputs_backward);

void gated_steps(int64_t n, const real* rates, const real* gates, real* steps) {
  HWY_DYNAMIC_DISPATCH(steps)(n, rates, gates, steps);
}
void gated_steps_backward(int64_t n, const real* rates, const real* gates, const real* grads,
                          real* gate_grads, real* rate_grads) {
  HWY_DYNAMIC_DISPATCH(steps_backward)(n, rates, gates, grads, gate_grads, rate_grads);
}
void gated_inputs(int64_t n, const GatedInput& row, real* to) {
  HWY_DYNAMIC_DISPATCH(inputs)(n, row, to);
}
void gated_inputs_backward(int64_t n, const GatedInput& row, const real* grads, real* x_grads,
                           real* gate_grads, real* step_grads) {
  HWY_DYNAMIC_DISPATCH(inputs_backward)(n, row, grads, x_grads, gate_grads, step_grads);
}

}  // namespace attn
#endif
