// One source, compiled by Highway for each instruction set; see attention_rows.h.
#include "core/simd/attention_rows.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/simd/attention_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/simd/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace attn {
namespace HWY_NAMESPACE {

HWY_INLINE Vector one_minus(Vector x) { return hn::Sub(all_of(1), x); }

void lstm(int64_t dim, real* a, const real* c_before, real* h) {
  real *const f = a + dim, *const g = f + dim, *const o = g + dim, *const c = o + dim;
  over_row(dim, [=](int64_t j, auto part) HWY_ATTR {
    const Vector in = sigmoid_of(part.load(a + j)), forget = sigmoid_of(part.load(f + j));
    const Vector fresh = tanh_of(part.load(g + j)), out = sigmoid_of(part.load(o + j));
    const Vector state = hn::MulAdd(forget, part.load(c_before + j), hn::Mul(in, fresh));
    part.store(in, a + j);
    part.store(forget, f + j);
    part.store(fresh, g + j);
    part.store(out, o + j);
    part.store(state, c + j);
    part.store(hn::Mul(out, tanh_of(state)), h + j);
  });
}

void lstm_back(int64_t dim, real* a, const real* c_before, const real* dh, real* dc) {
  real *const f = a + dim, *const g = f + dim, *const o = g + dim, *const c = o + dim;
  over_row(dim, [=](int64_t j, auto part) HWY_ATTR {
    const Vector t = tanh_of(part.load(c + j)), in = part.load(a + j), forget = part.load(f + j);
    const Vector fresh = part.load(g + j), out = part.load(o + j), grad_h = part.load(dh + j);
    const Vector flat = hn::NegMulAdd(t, t, all_of(1));
    const Vector grad = hn::MulAdd(hn::Mul(grad_h, out), flat, part.load(dc + j));
    const Vector before = part.load(c_before + j);
    part.store(hn::Mul(hn::Mul(grad, fresh), hn::Mul(in, one_minus(in))), a + j);
    part.store(hn::Mul(hn::Mul(grad, before), hn::Mul(forget, one_minus(forget))), f + j);
    part.store(hn::Mul(hn::Mul(grad, in), hn::NegMulAdd(fresh, fresh, all_of(1))), g + j);
    part.store(hn::Mul(hn::Mul(grad_h, t), hn::Mul(out, one_minus(out))), o + j);
    part.store(hn::Mul(grad, forget), dc + j);
  });
}

void gru(int64_t dim, real* a, const real* s, const real* candidate_bias, const real* h_before,
         real* h) {
  real *const z = a + dim, *const n = z + dim, *const m = n + dim;
  over_row(dim, [=](int64_t j, auto part) HWY_ATTR {
    const Vector reset = sigmoid_of(hn::Add(part.load(a + j), part.load(s + j)));
    const Vector update = sigmoid_of(hn::Add(part.load(z + j), part.load(s + dim + j)));
    const Vector inner = hn::Add(part.load(s + 2 * dim + j), part.load(candidate_bias + j));
    const Vector fresh = tanh_of(hn::MulAdd(reset, inner, part.load(n + j)));
    const Vector old = part.load(h_before + j);
    part.store(hn::MulAdd(one_minus(update), fresh, hn::Mul(update, old)), h + j);
    part.store(reset, a + j);
    part.store(update, z + j);
    part.store(fresh, n + j);
    part.store(inner, m + j);
  });
}

void gru_back(int64_t dim, real* a, const real* h_before, real* dh) {
  real *const z = a + dim, *const n = z + dim, *const m = n + dim;
  over_row(dim, [=](int64_t j, auto part) HWY_ATTR {
    const Vector reset = part.load(a + j), update = part.load(z + j), fresh = part.load(n + j);
    const Vector inner = part.load(m + j), grad_h = part.load(dh + j);
    const Vector grad =
        hn::Mul(hn::Mul(grad_h, one_minus(update)), hn::NegMulAdd(fresh, fresh, all_of(1)));
    const Vector turn = hn::Mul(grad_h, hn::Sub(part.load(h_before + j), fresh));
    part.store(hn::Mul(hn::Mul(grad, inner), hn::Mul(reset, one_minus(reset))), a + j);
    part.store(hn::Mul(turn, hn::Mul(update, one_minus(update))), z + j);
    part.store(hn::Mul(grad, reset), n + j);
    part.store(grad, m + j);
    part.store(hn::Mul(grad_h, update), dh + j);
  });
}

// Above this r of additive_scores is less than half a rounding of 1; the product of four such sums
// still is a number.
constexpr real kMostSum = kIsDouble ? real(1152921504606846976.0) : real(1073741824.0);

// 1 + e^(2a + 2b) of one unit and the keys of one vector, at most kMostSum; NaN stays.
template <bool kLarge>
HWY_INLINE Vector sum_at(real a, const real* b) {
  const Vector keys = hn::LoadU(Tag(), b), most = all_of(kMostSum);
  const Vector sum = kLarge ? hn::Add(all_of(1), exp_anywhere(hn::Add(all_of(a), keys)))
                            : hn::MulAdd(all_of(a), keys, all_of(1));
  return hn::IfThenElse(hn::Gt(sum, most), most, sum);
}

template <bool kLarge>
HWY_INLINE Vector four_units(const real* a, const real* weight, const real* b) {
  const Vector d0 = sum_at<kLarge>(a[0], b), d1 = sum_at<kLarge>(a[1], b + kPanel);
  const Vector d2 = sum_at<kLarge>(a[2], b + 2 * kPanel), d3 = sum_at<kLarge>(a[3], b + 3 * kPanel);
  const Vector n01 = hn::MulAdd(all_of(weight[0]), d1, hn::Mul(all_of(weight[1]), d0));
  const Vector n23 = hn::MulAdd(all_of(weight[2]), d3, hn::Mul(all_of(weight[3]), d2));
  const Vector d01 = hn::Mul(d0, d1), d23 = hn::Mul(d2, d3);
  return hn::Div(hn::MulAdd(n01, d23, hn::Mul(n23, d01)), hn::Mul(d01, d23));
}

template <bool kLarge>
HWY_INLINE void scores_of(const AdditiveRows& rows, const real* weight, real* out) {
  static_assert(kUnitMultiple == 4 && kPanel % kVector == 0);
  for (int64_t g = 0; g < kPanel; g += kVector) {  // a sum stays in a register
    Vector total = hn::Zero(Tag());
    for (int64_t c = 0; c < rows.units; c += kUnitMultiple)
      total = hn::Add(total,
                      four_units<kLarge>(rows.query + c, weight + c, rows.panel + c * kPanel + g));
    hn::StoreU(total, Tag(), out + g);
  }
}
void scores(const AdditiveRows& rows, const real* weight, real* out) {
  rows.large ? scores_of<true>(rows, weight, out) : scores_of<false>(rows, weight, out);
}

template <bool kLarge>
HWY_INLINE void gradients_of(const AdditiveRows& rows, const real* grad_logits, real* grad_keys,
                             real* grad_query, real* grad_unit) {
  const Tag d;
  for (int64_t c = 0; c < rows.units; ++c) {
    real* const key = grad_keys + c * kPanel;
    const real* const panel = rows.panel + c * kPanel;
    Vector query = hn::Zero(d), unit = query;
    for (int64_t g = 0; g < kPanel; g += kVector) {
      const Vector inverse = hn::Div(all_of(1), sum_at<kLarge>(rows.query[c], panel + g));
      const Vector once = hn::Mul(hn::LoadU(d, grad_logits + g), inverse);
      const Vector twice = hn::NegMulAdd(once, inverse, once);
      hn::StoreU(hn::Add(hn::LoadU(d, key + g), twice), d, key + g);
      query = hn::Add(query, twice);
      unit = hn::Add(unit, once);
    }
    grad_query[c] = hn::GetLane(hn::SumOfLanes(d, query));
    grad_unit[c] = hn::GetLane(hn::SumOfLanes(d, unit));
  }
}
void gradients_of_panel(const AdditiveRows& rows, const real* grad_logits, real* grad_keys,
                        real* grad_query, real* grad_unit) {
  rows.large ? gradients_of<true>(rows, grad_logits, grad_keys, grad_query, grad_unit)
             : gradients_of<false>(rows, grad_logits, grad_keys, grad_query, grad_unit);
}

void add_unit(int64_t keys, real a, const real* b, real factor, real* logits) {
  over_row(keys, [=](int64_t j, auto part) HWY_ATTR {
    const Vector sum = hn::Add(all_of(a), part.load(b + j));
    const Vector share =
        hn::Div(all_of(factor), hn::Add(all_of(1), exp_anywhere(hn::Add(sum, sum))));
    part.store(hn::Add(part.load(logits + j), share), logits + j);
  });
}

void relus(int64_t rows, int64_t cols, real* x, int64_t stride) {
  for (int64_t i = 0; i < rows; ++i) {
    real* const row = x + i * stride;
    over_row(cols, [=](int64_t j, auto part) HWY_ATTR {
      const Vector v = part.load(row + j);
      part.store(hn::IfThenZeroElse(hn::Lt(v, hn::Zero(Tag())), v), row + j);
    });
  }
}

void gradient_of_relu(int64_t cols, const real* weight, real factor, real* grad) {
  over_row(cols, [=](int64_t j, auto part) HWY_ATTR {
    const auto seen = hn::Gt(part.load(weight + j), hn::Zero(Tag()));
    part.store(hn::IfThenElseZero(seen, hn::Mul(all_of(factor), part.load(grad + j))), grad + j);
  });
}

using CodeTag = hn::Rebind<int32_t, Tag>;
using Codes = hn::Vec<CodeTag>;
using WholeTag = hn::RebindToSigned<Tag>;  // whole numbers as wide as `real`

// 1 for the keys that a round shows, else 0.
HWY_INLINE Codes shown_by(const BucketCodes& codes, int64_t round, int64_t j) {
  const CodeTag d;
  const Codes keys = hn::LoadU(d, codes.keys + round * codes.stride + j);
  const Codes below = hn::Sub(hn::Set(d, codes.query[round]), keys);
  const auto outside =
      hn::Or(hn::Lt(below, hn::Set(d, codes.min_gap)), hn::Gt(below, hn::Set(d, codes.max_gap)));
  return hn::IfThenZeroElse(outside, hn::Set(d, 1));
}
#if defined(ATTN_DOUBLE)
HWY_INLINE hn::Vec<WholeTag> widened(Codes x) { return hn::PromoteTo(WholeTag(), x); }
#else
HWY_INLINE hn::Vec<WholeTag> widened(Codes x) { return x; }
#endif

// log_of(counts) looks up the logarithms of a vector of counts.
template <class LogOf>
HWY_INLINE void mask_by_counts(int64_t count, const BucketCodes& codes, int64_t round,
                               const LogOf& log_of, real* logits) {
  static_assert(kRowMultiple % kVector == 0);
  const Tag d;
  for (int64_t j = 0; j < count; j += kVector) {
    Codes rounds = hn::Zero(CodeTag());
    for (int64_t r = 0; r < codes.rounds; ++r) rounds = hn::Add(rounds, shown_by(codes, r, j));
    const Vector lower = hn::Sub(hn::LoadU(d, logits + j), log_of(widened(rounds)));
    const auto seen =
        hn::RebindMask(d, hn::Gt(widened(shown_by(codes, round, j)), hn::Zero(WholeTag())));
    hn::StoreU(hn::IfThenElse(seen, lower, all_of(-kInfinity)), d, logits + j);
  }
}

void mask_unseen(int64_t count, const BucketCodes& codes, int64_t round, const real* log_counts,
                 real* logits) {
  const Tag d;
  if (codes.rounds >= kVector)
    return mask_by_counts(
        count, codes, round,
        [=](hn::Vec<WholeTag> counts) HWY_ATTR { return hn::GatherIndex(d, log_counts, counts); },
        logits);
  HWY_ALIGN real logs[kVector] = {};  // all of them fit a register
  std::copy_n(log_counts, codes.rounds + 1, logs);
  const Vector table = hn::Load(d, logs);
  mask_by_counts(
      count, codes, round,
      [=](hn::Vec<WholeTag> counts)
          HWY_ATTR { return hn::TableLookupLanes(table, hn::IndicesFromVec(d, counts)); },
      logits);
}

}  // namespace HWY_NAMESPACE
}  // namespace attn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attn {
HWY_EXPORT(lstm);
HWY_EXPORT(lstm_back);
HWY_EXPORT(gru);
HWY_EXPORT(gru_back);
HWY_EXPORT(scores);
HWY_EXPORT(gradients_of_panel);
HWY_EXPORT(add_unit);
HWY_EXPORT(relus);
HWY_EXPORT(gradient_of_relu);
HWY_EXPORT(mask_unseen);

void lstm_row(int64_t dim, real* a, const real* c_before, real* h) {
  HWY_DYNAMIC_DISPATCH(lstm)(dim, a, c_before, h);
}
void lstm_row_backward(int64_t dim, real* a, const real* c_before, const real* dh, real* dc) {
  HWY_DYNAMIC_DISPATCH(lstm_back)(dim, a, c_before, dh, dc);
}
void gru_row(int64_t dim, real* a, const real* s, const real* candidate_bias, const real* h_before,
             real* h) {
  HWY_DYNAMIC_DISPATCH(gru)(dim, a, s, candidate_bias, h_before, h);
}
void gru_row_backward(int64_t dim, real* a, const real* h_before, real* dh) {
  HWY_DYNAMIC_DISPATCH(gru_back)(dim, a, h_before, dh);
}

void additive_scores(const AdditiveRows& rows, const real* weight, real* out) {
  HWY_DYNAMIC_DISPATCH(scores)(rows, weight, out);
}
void additive_grad(const AdditiveRows& rows, const real* grad_logits, real* grad_keys,
                   real* grad_query, real* grad_unit) {
  HWY_DYNAMIC_DISPATCH(gradients_of_panel)(rows, grad_logits, grad_keys, grad_query, grad_unit);
}
void add_additive_unit(int64_t keys, real a, const real* b, real factor, real* logits) {
  HWY_DYNAMIC_DISPATCH(add_unit)(keys, a, b, factor, logits);
}

void relu_rows(int64_t rows, int64_t cols, real* x, int64_t stride) {
  const KernelMark mark(Part::scores);
  HWY_DYNAMIC_DISPATCH(relus)(rows, cols, x, stride);
}
void relu_grad_row(int64_t cols, const real* weight, real factor, real* grad) {
  HWY_DYNAMIC_DISPATCH(gradient_of_relu)(cols, weight, factor, grad);
}

void mask_buckets(int64_t count, const BucketCodes& codes, int64_t round, const real* log_counts,
                  real* logits) {
  HWY_DYNAMIC_DISPATCH(mask_unseen)(count, codes, round, log_counts, logits);
}

}  // namespace attn
#endif
