// One source, compiled by Highway for each instruction set. A vector of channels goes through all
// positions before the next one: its states stay in the first-level cache or in registers.
#include "core/simd/scan_rows.h"

#include <algorithm>

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/scan_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/exp2_of.h"
#include "core/simd/vector_math.h"
HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

void selective(const SelectiveRows& r, real* state, real* out) {
  over_row(r.dim, [&](int64_t j, auto part) HWY_ATTR {
    for (int64_t t = 0; t < r.steps; ++t) {
      const Vector delta = part.load(r.delta + t * r.dim + j);
      const Vector written = hn::Mul(delta, part.load(r.x + t * r.dim + j));
      const real *const write = r.write + t * r.states, *const read = r.read + t * r.states;
      Vector even = hn::Zero(Tag()), odd = even;  // two chains of sums
      for (int64_t n = 0; n < r.states; ++n) {
        const int64_t at = n * r.dim + j;
        const Vector a = exp2_of(hn::Mul(delta, part.load(r.rate + at)));
        const Vector h = hn::MulAdd(a, part.load(state + at), hn::Mul(written, all_of(write[n])));
        part.store(h, state + at);
        Vector& sum = n % 2 == 0 ? even : odd;
        sum = hn::MulAdd(all_of(read[n]), h, sum);
      }
      if (out) part.store(hn::Add(even, odd), out + t * r.dim + j);
    }
  });
}

// Of one vector of channels: the factors and states of all positions.
struct History {
  real *factors, *states;  // [steps, states, kVector]
};

template <class Part>
HWY_INLINE void repeat_selective(const SelectiveRows& r, const real* state, int64_t j, Part part,
                                 const History& kept) {
  for (int64_t t = 0; t < r.steps; ++t) {
    const Vector delta = part.load(r.delta + t * r.dim + j);
    const Vector written = hn::Mul(delta, part.load(r.x + t * r.dim + j));
    for (int64_t n = 0; n < r.states; ++n) {
      const int64_t at = (t * r.states + n) * kVector;
      const Vector before = t == 0 ? part.load(state + n * r.dim + j)
                                   : hn::LoadU(Tag(), kept.states + at - r.states * kVector);
      const Vector a = exp2_of(hn::Mul(delta, part.load(r.rate + n * r.dim + j)));
      hn::StoreU(a, Tag(), kept.factors + at);
      hn::StoreU(hn::MulAdd(a, before, hn::Mul(written, all_of(r.write[t * r.states + n]))), Tag(),
                 kept.states + at);
    }
  }
}

void selective_backward(const SelectiveRows& r, const real* state, const real* grad_out,
                        real* grad_state, const SelectiveGrads& grads, real* work) {
  const Tag d;
  constexpr real kLn2 = static_cast<real>(0.69314718055994530942);
  const int64_t size = r.steps * r.states * kVector;
  const History kept{work, work + size};
  real *const writes = work + 2 * size, *const reads = writes + size;  // of each lane
  std::fill_n(writes, 2 * size, real(0));
  over_row(r.dim, [&](int64_t j, auto part) HWY_ATTR {
    repeat_selective(r, state, j, part, kept);
    for (int64_t t = r.steps - 1; t >= 0; --t) {
      const Vector delta = part.load(r.delta + t * r.dim + j);
      const Vector x = part.load(r.x + t * r.dim + j), dy = part.load(grad_out + t * r.dim + j);
      const Vector written = hn::Mul(delta, x);
      Vector of_written = hn::Zero(d), of_exponent = of_written;
      for (int64_t n = 0; n < r.states; ++n) {
        const int64_t at = (t * r.states + n) * kVector, own = n * r.dim + j;
        const Vector a = hn::LoadU(d, kept.factors + at);
        const Vector before =
            t == 0 ? part.load(state + own) : hn::LoadU(d, kept.states + at - r.states * kVector);
        const Vector g =
            hn::MulAdd(all_of(r.read[t * r.states + n]), dy, part.load(grad_state + own));
        const Vector h = hn::LoadU(d, kept.states + at);
        hn::StoreU(hn::MulAdd(dy, h, hn::LoadU(d, reads + at)), d, reads + at);
        hn::StoreU(hn::MulAdd(g, written, hn::LoadU(d, writes + at)), d, writes + at);
        of_written = hn::MulAdd(g, all_of(r.write[t * r.states + n]), of_written);
        const Vector back = hn::Mul(a, g), exponent = hn::Mul(back, before);
        of_exponent = hn::MulAdd(exponent, part.load(r.rate + own), of_exponent);
        part.store(hn::MulAdd(exponent, delta, part.load(grads.rate + own)), grads.rate + own);
        part.store(back, grad_state + own);
      }
      part.store(hn::Mul(of_written, delta), grads.x + t * r.dim + j);
      part.store(hn::MulAdd(of_exponent, all_of(kLn2), hn::Mul(of_written, x)),
                 grads.delta + t * r.dim + j);
    }
  });
  for (int64_t i = 0; i < r.steps * r.states; ++i) {
    grads.write[i] = hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, writes + i * kVector)));
    grads.read[i] = hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, reads + i * kVector)));
  }
}

struct Complex {
  Vector re, im;
};
// a·b + c
HWY_INLINE Complex multiply_add(Complex a, Complex b, Complex c) {
  return {hn::MulAdd(a.re, b.re, hn::NegMulAdd(a.im, b.im, c.re)),
          hn::MulAdd(a.re, b.im, hn::MulAdd(a.im, b.re, c.im))};
}
template <class Part>
HWY_INLINE Complex load(Part part, const real* re, const real* im, int64_t at) {
  return {part.load(re + at), part.load(im + at)};
}
template <class Part>
HWY_INLINE void store(Part part, Complex x, real* re, real* im, int64_t at) {
  part.store(x.re, re + at);
  part.store(x.im, im + at);
}

// Two states at a time: while one waits for its last step, the other computes.
template <int kStates, class Part>
HWY_INLINE void constant_states(const ConstantRows& r, real* state, real* out, int64_t n, int64_t j,
                                Part part) {
  real* const state_im = state + r.states * r.dim;
  Complex h[kStates], factor[kStates], read[kStates];
  for (int i = 0; i < kStates; ++i) {
    const int64_t at = (n + i) * r.dim + j;
    h[i] = load(part, state, state_im, at);
    factor[i] = load(part, r.factor_re, r.factor_im, at);
    read[i] = load(part, r.read_re, r.read_im, at);
  }
  for (int64_t t = 0; t < r.steps; ++t) {
    const Vector x = part.load(r.x + t * r.dim + j);
    Vector y = out && n > 0 ? part.load(out + t * r.dim + j) : hn::Zero(Tag());
    for (int i = 0; i < kStates; ++i) {
      h[i] = multiply_add(factor[i], h[i], {x, hn::Zero(Tag())});
      y = hn::MulAdd(read[i].re, h[i].re, hn::NegMulAdd(read[i].im, h[i].im, y));
    }
    if (out) part.store(y, out + t * r.dim + j);
  }
  for (int i = 0; i < kStates; ++i) store(part, h[i], state, state_im, (n + i) * r.dim + j);
}

void constant(const ConstantRows& r, real* state, real* out) {
  over_row(r.dim, [&](int64_t j, auto part) HWY_ATTR {
    int64_t n = 0;
    for (; n + 2 <= r.states; n += 2) constant_states<2>(r, state, out, n, j, part);
    if (n < r.states) constant_states<1>(r, state, out, n, j, part);
  });
}

void constant_backward(const ConstantRows& r, const real* state, const real* grad_out,
                       real* grad_state, const ConstantGrads& grads, real* work) {
  const Tag d;
  const int64_t half = r.states * r.dim;
  real* const kept_im = work + r.steps * kVector;
  over_row(r.dim, [&](int64_t j, auto part) HWY_ATTR {
    for (int64_t n = 0; n < r.states; ++n) {
      const int64_t at = n * r.dim + j;
      const Complex factor = load(part, r.factor_re, r.factor_im, at);
      const Complex read = load(part, r.read_re, r.read_im, at),
                    start = load(part, state, state + half, at);
      Complex h = start;
      for (int64_t t = 0; t < r.steps; ++t) {
        h = multiply_add(factor, h, {part.load(r.x + t * r.dim + j), hn::Zero(d)});
        store(Whole(), h, work, kept_im, t * kVector);
      }
      Complex g = load(part, grad_state, grad_state + half, at);
      Complex of_factor = load(part, grads.factor_re, grads.factor_im, at);
      Complex of_read = load(part, grads.read_re, grads.read_im, at);
      for (int64_t t = r.steps - 1; t >= 0; --t) {
        const Vector dy = part.load(grad_out + t * r.dim + j);
        const Complex now = load(Whole(), work, kept_im, t * kVector);
        const Complex before = t == 0 ? start : load(Whole(), work, kept_im, (t - 1) * kVector);
        g = {hn::MulAdd(read.re, dy, g.re), hn::NegMulAdd(read.im, dy, g.im)};
        of_read = {hn::MulAdd(dy, now.re, of_read.re), hn::NegMulAdd(dy, now.im, of_read.im)};
        const Complex conjugate{before.re, hn::Neg(before.im)};
        of_factor = multiply_add(g, conjugate, of_factor);
        const Vector dx = n == 0 ? hn::Zero(d) : part.load(grads.x + t * r.dim + j);
        part.store(hn::Add(dx, g.re), grads.x + t * r.dim + j);
        g = multiply_add({factor.re, hn::Neg(factor.im)}, g, {hn::Zero(d), hn::Zero(d)});
      }
      store(part, g, grad_state, grad_state + half, at);
      store(part, of_factor, grads.factor_re, grads.factor_im, at);
      store(part, of_read, grads.read_re, grads.read_im, at);
    }
  });
}

void complex_rows(const ComplexRows& r, const real* x, const real* state, real* out) {
  const int64_t n = r.states;
  for (int64_t t = 0; t < r.steps; ++t) {
    const real *const from = x + t * 2 * n, *const last = t > 0 ? out + (t - 1) * 2 * n : state;
    real* const to = out + t * 2 * n;
    over_row(n, [&](int64_t j, auto part) HWY_ATTR {
      const Vector scale = part.load(r.scale + j);
      Complex h{hn::Mul(scale, part.load(from + j)), hn::Mul(scale, part.load(from + n + j))};
      if (last)
        h = multiply_add(load(part, r.factor_re, r.factor_im, j), load(part, last, last + n, j), h);
      store(part, h, to, to + n, j);
    });
  }
}

void complex_rows_backward(const ComplexRows& r, real* grad) {
  const int64_t n = r.states;
  for (int64_t t = r.steps - 2; t >= 0; --t) {
    real *const own = grad + t * 2 * n, *const later = own + 2 * n;
    over_row(n, [&](int64_t j, auto part) HWY_ATTR {
      const Complex factor = load(part, r.factor_re, r.factor_im, j);
      const Complex g = multiply_add({factor.re, hn::Neg(factor.im)},
                                     load(part, later, later + n, j), load(part, own, own + n, j));
      store(part, g, own, own + n, j);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
namespace {
constexpr int64_t kMostLanes = 64 / sizeof(real);  // of AVX-512, so that no workspace depends on it
}
HWY_EXPORT(selective);
HWY_EXPORT(selective_backward);
HWY_EXPORT(constant);
HWY_EXPORT(constant_backward);
HWY_EXPORT(complex_rows);
HWY_EXPORT(complex_rows_backward);

void scan_selective(const SelectiveRows& rows, real* state, real* out) {
  HWY_DYNAMIC_DISPATCH(selective)(rows, state, out);
}
void scan_selective_backward(const SelectiveRows& rows, const real* state, const real* grad_out,
                             real* grad_state, const SelectiveGrads& grads, real* work) {
  HWY_DYNAMIC_DISPATCH(selective_backward)(rows, state, grad_out, grad_state, grads, work);
}
int64_t selective_backward_reals(int64_t steps, int64_t states) {
  return 4 * steps * states * kMostLanes;
}
void scan_constant(const ConstantRows& rows, real* state, real* out) {
  HWY_DYNAMIC_DISPATCH(constant)(rows, state, out);
}
void scan_constant_backward(const ConstantRows& rows, const real* state, const real* grad_out,
                            real* grad_state, const ConstantGrads& grads, real* work) {
  HWY_DYNAMIC_DISPATCH(constant_backward)(rows, state, grad_out, grad_state, grads, work);
}
int64_t constant_backward_reals(int64_t steps) { return 2 * steps * kMostLanes; }
void scan_complex(const ComplexRows& rows, const real* x, const real* state, real* out) {
  HWY_DYNAMIC_DISPATCH(complex_rows)(rows, x, state, out);
}
void scan_complex_backward(const ComplexRows& rows, real* grad) {
  HWY_DYNAMIC_DISPATCH(complex_rows_backward)(rows, grad);
}

}  // namespace attn
#endif
