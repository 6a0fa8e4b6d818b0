// One source, compiled by Highway for each instruction set; see row_ops.h.
#include "core/simd/row_ops.h"

#include <algorithm>
#include <cmath>

#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/row_ops.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/max_lane.h"
#include "core/simd/one_less_exp.h"
#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

real sum_of(const real* x, int64_t n) {
  return sum_row(n, [=](int64_t j, auto part) HWY_ATTR { return part.load(x + j); });
}

HWY_INLINE real dot(const real* x, const real* y, int64_t n) {
  const Tag d;
  Vector a = hn::Zero(d), b = a;
  int64_t j = 0;
  for (; j + 2 * kVector <= n; j += 2 * kVector) {
    a = hn::MulAdd(hn::LoadU(d, x + j), hn::LoadU(d, y + j), a);
    b = hn::MulAdd(hn::LoadU(d, x + j + kVector), hn::LoadU(d, y + j + kVector), b);
  }
  if (j + kVector <= n) a = hn::MulAdd(hn::LoadU(d, x + j), hn::LoadU(d, y + j), a), j += kVector;
  if (j < n) b = hn::MulAdd(Partial{n - j}.load(x + j), Partial{n - j}.load(y + j), b);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}
real dot_of(const real* x, const real* y, int64_t n) { return dot(x, y, n); }
// Four rows at a time: the sums over lanes of one wait for nothing of the others.
void dots_between(int64_t rows, int64_t cols, const real* x, int64_t x_row, const real* y,
                  int64_t y_row, real* dots) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    real four[4];
    for (int64_t r = 0; r < 4; ++r) four[r] = dot(x + (i + r) * x_row, y + (i + r) * y_row, cols);
    std::copy_n(four, 4, dots + i);
  }
  for (; i < rows; ++i) dots[i] = dot(x + i * x_row, y + i * y_row, cols);
}

HWY_INLINE real max_in_row(const real* x, int64_t n) {
  const Tag d;
  Vector most = all_of(-kInfinity);
  over_row(n, [&](int64_t j, auto part) HWY_ATTR {
    const Vector v = part.keep_or(part.load(x + j), most);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);  // passes over NaN
  });
  return max_lane(d, most);
}
real max_of_row(const real* x, int64_t n) { return max_in_row(x, n); }

void column_sums(real* to, const real* from, int64_t rows, int64_t n, int64_t stride) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const real *a = from + row * stride, *b = a + stride, *c = b + stride, *d = c + stride;
    over_row(n, [=](int64_t j, auto part) HWY_ATTR {
      const Vector ab = hn::Add(part.load(a + j), part.load(b + j));
      const Vector cd = hn::Add(part.load(c + j), part.load(d + j));
      part.store(hn::Add(part.load(to + j), hn::Add(ab, cd)), to + j);
    });
  }
  for (; row < rows; ++row) {
    const real* const a = from + row * stride;
    over_row(n, [=](int64_t j, auto part)
                    HWY_ATTR { part.store(hn::Add(part.load(to + j), part.load(a + j)), to + j); });
  }
}

HWY_INLINE real exp_along(int64_t n, const real* x, real factor, real shift, real* to) {
  const Vector by = all_of(factor), offset = all_of(shift);
  return sum_row(n, [=](int64_t j, auto part) HWY_ATTR {
    const Vector e = exp_anywhere(hn::Sub(hn::Mul(by, part.load(x + j)), offset));
    part.store(e, to + j);
    return e;
  });
}
real exp_of_row(int64_t n, const real* x, real factor, real shift, real* to) {
  return exp_along(n, x, factor, shift, to);
}

real log_sum_of(int64_t n, const real* x) {
  const real row_max = max_in_row(x, n);
  const Vector offset = all_of(row_max);
  const real sum = sum_row(n, [=](int64_t j, auto part) HWY_ATTR {
    return exp_anywhere(hn::Sub(part.load(x + j), offset));
  });
  return row_max + std::log(sum);
}

void sigmoids(int64_t n, const real* x, real* to) {
  over_row(
      n, [=](int64_t j, auto part) HWY_ATTR { part.store(sigmoid_of(part.load(x + j)), to + j); });
}
void tanhs(int64_t n, const real* x, real* to) {
  over_row(n, [=](int64_t j, auto part) HWY_ATTR {
    const Vector v = part.load(x + j), size = hn::Abs(v);
    const Vector lost = OneLessExp(hn::Add(size, size)).lost;
    part.store(hn::CopySign(hn::Div(lost, hn::Sub(all_of(2), lost)), v), to + j);
  });
}
void softpluses(int64_t n, const real* x, real sign, real factor, real* to) {
  const Vector by = all_of(sign), times = all_of(factor);
  over_row(n, [=](int64_t j, auto part) HWY_ATTR {
    part.store(hn::Mul(times, softplus_of(hn::Mul(by, part.load(x + j)))), to + j);
  });
}
void exps_or_line(int64_t n, const real* x, real* to) {
  over_row(n, [=](int64_t j, auto part) HWY_ATTR {
    const Vector v = part.load(x + j), e = hn::Sub(exp_anywhere(v), all_of(1));
    part.store(hn::IfThenElse(hn::Gt(v, all_of(0)), v, e), to + j);
  });
}

void softmaxes(int64_t rows, int64_t n, const real* x, real* y) {
  for (int64_t i = 0; i < rows; ++i, x += n, y += n) {
    const real most = max_in_row(x, n);
    const real total = exp_along(n, x, 1, most == -kInfinity ? real(0) : most, y);
    const Vector factor = all_of(total == 0 ? real(0) : 1 / total);
    real* const to = y;
    over_row(n, [=](int64_t j, auto part)
                    HWY_ATTR { part.store(hn::Mul(part.load(to + j), factor), to + j); });
  }
}

void softmaxes_back(int64_t rows, int64_t n, const real* y, const real* g, real* dx) {
  for (int64_t i = 0; i < rows; ++i, y += n, g += n, dx += n) {
    const Vector along = all_of(dot(y, g, n));
    const real *const p = y, *const up = g;
    real* const to = dx;
    over_row(n, [=](int64_t j, auto part) HWY_ATTR {
      part.store(hn::Mul(part.load(p + j), hn::Sub(part.load(up + j), along)), to + j);
    });
  }
}

struct GeluVector {
  Vector value, derivative;  // x·Φ(x) and Φ(x) + x·φ(x)
};
#if defined(ATTN_DOUBLE)
HWY_INLINE GeluVector gelu_of(Vector x) {
  HWY_ALIGN real values[kVector], derivatives[kVector];
  hn::Store(x, Tag(), values);
  for (int64_t i = 0; i < kVector; ++i) {
    const real v = values[i], below = 0.5 * std::erfc(v * -0.70710678118654752);
    const real density = 0.39894228040143268 * std::exp(-0.5 * v * v);              // of 1/√(2π)
    const real above = std::max<real>(v, -100), near = std::min<real>(above, 100);  // 0·∞ is NaN
    values[i] = above * below, derivatives[i] = below + near * density;
  }
  return {hn::Load(Tag(), values), hn::Load(Tag(), derivatives)};
}
#else
// Φ(x) and e^(-x²/2): 0.5·erfc(u/√2)·e^(u²/2) for u = |x| is a polynomial in t = 1/(1 + 0.229·u),
// interpolated at Chebyshev nodes of [0, 14], relative error 6e-8.
HWY_INLINE GeluVector gelu_of(Vector x) {
  const Tag d;
  const Bits bits;
  // e^(-x²/2) = 2^(n + f), |f| <= 1/2; 0 where it would be denormal.
  const Vector round = all_of(12582912.0F), scale = all_of(-0.72134752F);  // 1.5·2^23; -log2(e)/2
  const Vector most = all_of(174.6F), one = all_of(1);
  const Vector square = hn::Mul(x, x), bounded = hn::Min(square, most);
  const Vector shifted = hn::MulAdd(bounded, scale, round);
  const Vector f = hn::MulAdd(bounded, scale, hn::Sub(round, shifted));
  constexpr real kPower[] = {// 2^f, interpolated at Chebyshev nodes, relative error 2e-8
                             0.0001546144472F,
                             0.001340042818F,
                             0.009618056678F,
                             0.05550327227F,
                             0.2402265092F,
                             0.6931472067F,
                             1.0F};
  Vector q = all_of(kPower[0]);
  for (int i = 1; i < 7; ++i) q = hn::MulAdd(q, f, all_of(kPower[i]));
  const auto power = hn::ShiftLeft<23>(hn::BitCast(bits, shifted));
  const Vector normal = hn::BitCast(d, hn::Add(hn::BitCast(bits, q), power));
  const Vector e = hn::IfThenZeroElse(hn::Gt(square, most), normal);
  const Vector t = hn::Div(one, hn::MulAdd(hn::Abs(x), all_of(0.229F), one));
  constexpr real kTail[] = {-0.08156878115F, 0.30878614819F,  -0.31053401677F,
                            0.33323179342F,  -0.05206085494F, 0.12625689480F,
                            0.08373970457F,  0.09218835712F,  -3.926283746e-5F};
  Vector p = all_of(kTail[0]);
  for (int i = 1; i < 9; ++i) p = hn::MulAdd(p, t, all_of(kTail[i]));
  const Vector tail = hn::Mul(p, e);
  const Vector below = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  // Beyond 100 the factors of x are 0 (or 1): it is bounded, since 0 times infinity is NaN.
  const Vector far = all_of(100), least = hn::Neg(far);
  const Vector above = hn::IfThenElse(hn::Lt(x, least), least, x);
  const Vector near = hn::IfThenElse(hn::Gt(above, far), far, above);
  const Vector density = hn::Mul(all_of(0.39894228040143268F), e);  // 1/√(2π)
  return {hn::Mul(above, below), hn::MulAdd(near, density, below)};
}
#endif

void gelus(int64_t rows, int64_t cols, RowBlock from, const real* bias, RowBlock to,
           RowBlock derivative, bool set) {
  for (int64_t i = 0; i < rows; ++i) {
    const real* const x = from.data + i * from.row;
    real *const y = to.data + i * to.row, *const s = derivative.data + i * derivative.row;
    if (!derivative.data) {
      over_row(cols, [=](int64_t j, auto part) HWY_ATTR {
        const Vector v = part.load(x + j);
        part.store(gelu_of(bias ? hn::Add(v, part.load(bias + j)) : v).value, y + j);
      });
      continue;
    }
    over_row(cols, [=](int64_t j, auto part) HWY_ATTR {
      const Vector v = part.load(x + j);
      const GeluVector at = gelu_of(bias ? hn::Add(v, part.load(bias + j)) : v);
      part.store(at.value, y + j);
      part.store(set ? at.derivative : hn::Mul(part.load(s + j), at.derivative), s + j);
    });
  }
}

void layer_norms(int64_t rows, int64_t n, const real* x, const real* gain, const real* bias,
                 real epsilon, real* y, real* stats) {
  for (int64_t i = 0; i < rows; ++i) {
    const real* const row = x + i * n;
    real* const to = y + i * n;
    const real mean = sum_of(row, n) / static_cast<real>(n);
    const Vector means = all_of(mean);
    const real variance = sum_row(n, [=](int64_t j, auto part) HWY_ATTR {
      const Vector off = hn::Sub(part.load(row + j), means);
      return hn::Mul(off, off);
    });
    const real rate = 1 / std::sqrt(variance / static_cast<real>(n) + epsilon);
    const Vector rates = all_of(rate);
    over_row(n, [=](int64_t j, auto part) HWY_ATTR {
      const Vector unit = hn::Mul(hn::Sub(part.load(row + j), means), rates);
      part.store(hn::MulAdd(unit, part.load(gain + j), part.load(bias + j)), to + j);
    });
    if (stats) stats[2 * i] = mean, stats[2 * i + 1] = rate;
  }
}

void layer_norms_back(int64_t rows, int64_t n, const real* x, const real* stats, const real* g,
                      const real* gain, real* dx, bool add, real* dgain, real* dbias) {
  for (int64_t i = 0; i < rows; ++i) {
    const real *const row = x + i * n, *const up = g + i * n;
    const Vector mean = all_of(stats[2 * i]), rate = all_of(stats[2 * i + 1]);
    const Tag d;
    Vector pulls = hn::Zero(d), both = pulls;  // Σ g·gain and Σ g·gain·x̂
    over_row(n, [&](int64_t j, auto part) HWY_ATTR {
      const Vector unit = hn::Mul(hn::Sub(part.load(row + j), mean), rate);
      const Vector upstream = part.load(up + j), pull = hn::Mul(upstream, part.load(gain + j));
      part.store(hn::MulAdd(upstream, unit, part.load(dgain + j)), dgain + j);
      part.store(hn::Add(part.load(dbias + j), upstream), dbias + j);
      pulls = hn::Add(pulls, pull);  // what `part` lacks is 0
      both = hn::MulAdd(pull, unit, both);
    });
    if (!dx) continue;
    const real each = 1 / static_cast<real>(n);
    const Vector mean_pull = all_of(each * hn::GetLane(hn::SumOfLanes(d, pulls)));
    const Vector mean_both = all_of(each * hn::GetLane(hn::SumOfLanes(d, both)));
    real* const down = dx + i * n;
    over_row(n, [=](int64_t j, auto part) HWY_ATTR {
      const Vector unit = hn::Mul(hn::Sub(part.load(row + j), mean), rate);
      const Vector pull = hn::Mul(part.load(up + j), part.load(gain + j));
      const Vector rest = hn::NegMulAdd(unit, mean_both, hn::Sub(pull, mean_pull));
      part.store(add ? hn::MulAdd(rate, rest, part.load(down + j)) : hn::Mul(rate, rest), down + j);
    });
  }
}

void adamw(int64_t n, const AdamWStep& s, real* value, real* gradient, real* first, real* second) {
  const AdamWStep by = s;
  over_row(n, [=](int64_t j, auto part) HWY_ATTR {
    const Vector g = part.load(gradient + j);
    const Vector m =
        hn::MulAdd(all_of(by.beta1), part.load(first + j), hn::Mul(all_of(by.grad_factor), g));
    const Vector v = hn::MulAdd(all_of(by.beta2), part.load(second + j),
                                hn::Mul(all_of(by.grad_square_factor), hn::Mul(g, g)));
    part.store(m, first + j);
    part.store(v, second + j);
    const Vector root = hn::Add(hn::Sqrt(v), all_of(by.epsilon));
    const Vector step = hn::Div(hn::Mul(all_of(by.step_size), m), root);
    part.store(hn::MulSub(all_of(by.decay_factor), part.load(value + j), step), value + j);
    part.store(hn::Zero(Tag()), gradient + j);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(sum_of);
HWY_EXPORT(dot_of);
HWY_EXPORT(dots_between);
HWY_EXPORT(max_of_row);
HWY_EXPORT(column_sums);
HWY_EXPORT(exp_of_row);
HWY_EXPORT(log_sum_of);
HWY_EXPORT(sigmoids);
HWY_EXPORT(tanhs);
HWY_EXPORT(softpluses);
HWY_EXPORT(exps_or_line);
HWY_EXPORT(softmaxes);
HWY_EXPORT(softmaxes_back);
HWY_EXPORT(gelus);
HWY_EXPORT(layer_norms);
HWY_EXPORT(layer_norms_back);
HWY_EXPORT(adamw);

real sum_in_row(const real* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(sum_of)(x, n); }
real row_dot(const real* x, const real* y, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(dot_of)(x, y, n);
}
real max_in_row(const real* x, int64_t n) { return HWY_DYNAMIC_DISPATCH(max_of_row)(x, n); }

void dots_of_rows(int64_t rows, int64_t cols, const real* x, int64_t x_row, const real* y,
                  int64_t y_row, real* dots) {
  HWY_DYNAMIC_DISPATCH(dots_between)(rows, cols, x, x_row, y, y_row, dots);
}

void add_column_sums(real* to, const real* from, int64_t rows, int64_t n, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(column_sums)(to, from, rows, n, stride == 0 ? n : stride);
}

real exp_row(int64_t n, const real* x, real factor, real shift, real* to) {
  return HWY_DYNAMIC_DISPATCH(exp_of_row)(n, x, factor, shift, to);
}
real log_sum_row(int64_t n, const real* x) { return HWY_DYNAMIC_DISPATCH(log_sum_of)(n, x); }
void sigmoid_row(int64_t n, const real* x, real* to) { HWY_DYNAMIC_DISPATCH(sigmoids)(n, x, to); }
void tanh_row(int64_t n, const real* x, real* to) { HWY_DYNAMIC_DISPATCH(tanhs)(n, x, to); }
void softplus_row(int64_t n, const real* x, real sign, real factor, real* to) {
  HWY_DYNAMIC_DISPATCH(softpluses)(n, x, sign, factor, to);
}
void elu_row(int64_t n, const real* x, real* to) { HWY_DYNAMIC_DISPATCH(exps_or_line)(n, x, to); }

void softmax_rows(int64_t rows, int64_t n, const real* x, real* y) {
  HWY_DYNAMIC_DISPATCH(softmaxes)(rows, n, x, y);
}
void softmax_rows_backward(int64_t rows, int64_t n, const real* y, const real* g, real* dx) {
  HWY_DYNAMIC_DISPATCH(softmaxes_back)(rows, n, y, g, dx);
}

void gelu_rows(int64_t rows, int64_t cols, RowBlock from, const real* bias, RowBlock to,
               RowBlock derivative, bool set) {
  HWY_DYNAMIC_DISPATCH(gelus)(rows, cols, from, bias, to, derivative, set);
}

void layer_norm_rows(int64_t rows, int64_t n, const real* x, const real* gain, const real* bias,
                     real epsilon, real* y, real* stats) {
  HWY_DYNAMIC_DISPATCH(layer_norms)(rows, n, x, gain, bias, epsilon, y, stats);
}
void layer_norm_rows_backward(int64_t rows, int64_t n, const real* x, const real* stats,
                              const real* g, const real* gain, real* dx, bool add, real* dgain,
                              real* dbias) {
  HWY_DYNAMIC_DISPATCH(layer_norms_back)(rows, n, x, stats, g, gain, dx, add, dgain, dbias);
}

void adamw_row(int64_t n, const AdamWStep& step, real* value, real* gradient, real* first,
               real* second) {
  HWY_DYNAMIC_DISPATCH(adamw)(n, step, value, gradient, first, second);
}

}  // namespace attn
#endif
