// Two softmaxes as one, by their log-sum-exps; see softmax_log_sum.h. Parallel over batch × heads;
// the gradient of a sink sums over its rows in double.
#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/marks.h"
#include "core/simd/row_ops.h"
#include "core/simd/rows.h"
#include "variants/softmax/softmax_log_sum.h"

namespace attn {
namespace {

// What each part has of a row's weight, from log-sum-exps; -infinity: the part is not there.
struct Shares {
  real first = 0, second = 0, sink = 0;

  Shares(real a, real b, real s) {
    const real most = std::max({a, b, s});
    if (most == -kInfinity) return;
    first = std::exp(a - most), second = std::exp(b - most), sink = std::exp(s - most);
    const real sum = first + second + sink;
    first /= sum, second /= sum, sink /= sum;
  }
};

struct Parts {
  Tensor first, first_sum, second, second_sum, sinks;  // undefined: not there

  int64_t heads() const { return first.dim(1); }
  int64_t len() const { return first.dim(2); }
  Shares shares(int64_t row) const {
    return {first_sum[row], second.defined() ? second_sum[row] : -kInfinity,
            sinks.defined() ? sinks[row / len() % heads()] : -kInfinity};
  }
};

Tensor join(const Parts& of) {
  const Mark mark(Part::softmax);
  const Tensor out(of.first.shape());
  const int64_t d = out.dim(3);
  over_range(out.size() / d, 4 * d, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Shares share = of.shares(row);
      const real* const first = of.first.data() + row * d;
      real* const to = out.data() + row * d;
      if (!of.second.defined()) {
        for (int64_t c = 0; c < d; ++c) to[c] = share.first * first[c];
        continue;
      }
      const real* const second = of.second.data() + row * d;
      for (int64_t c = 0; c < d; ++c) to[c] = share.first * first[c] + share.second * second[c];
    }
  });
  return out;
}

// With shares p of parts of outputs o_p, o = Σ_p s_p·o_p: do_p = s_p·g, dL_p = s_p·g·(o_p - o), and
// the sink's output is 0. grads: those of first, first_sum, second, second_sum, sinks.
void join_backward(const Parts& of, const Tensor& out, const Tensor& g, std::span<Tensor> grads) {
  const Mark mark(Part::softmax);
  const int64_t d = out.dim(3), len = of.len(), heads = of.heads(), all = out.size() / (d * len);
  const auto add_part = [&](int64_t row, real share, real of_out, const Tensor& part, Tensor& grad,
                            Tensor& grad_sum) {
    const real* const from = g.data() + row * d;
    if (grad_sum.defined())
      grad_sum[row] += share * (row_dot(from, part.data() + row * d, d) - of_out);
    if (!grad.defined()) return;
    real* const to = grad.data() + row * d;
    for (int64_t c = 0; c < d; ++c) to[c] += share * from[c];
  };
  over_range(heads, all / heads * len * 6 * d, [&](int64_t begin, int64_t end) {
    for (int64_t h = begin; h < end; ++h) {
      double of_sink = 0;
      for (int64_t at = h; at < all; at += heads)
        for (int64_t row = at * len; row < (at + 1) * len; ++row) {
          const Shares share = of.shares(row);
          const real of_out = row_dot(g.data() + row * d, out.data() + row * d, d);
          add_part(row, share.first, of_out, of.first, grads[0], grads[1]);
          if (of.second.defined())
            add_part(row, share.second, of_out, of.second, grads[2], grads[3]);
          of_sink -= static_cast<double>(share.sink * of_out);
        }
      if (grads[4].defined()) grads[4][h] += static_cast<real>(of_sink);
    }
  });
}

}  // namespace

Var joined_softmax(const SoftmaxResult& a, const SoftmaxResult& b, const Var& sinks) {
  ATTN_CHECK(!sinks.defined() || sinks.shape() == Shape{a.out.dim(1)},
             "sinks {} do not fit the softmax {}; expected one for each head",
             sinks.defined() ? sinks.shape().str() : "", a.out.shape().str());
  const auto value = [](const Var& x) { return x.defined() ? x.value() : Tensor(); };
  const Parts of{a.out.value(), a.log_sum.value(), value(b.out), value(b.log_sum), value(sinks)};
  const Tensor out = join(of);
  // Absent parts stand as inputs without gradients.
  const Var none(Tensor::zeros({1}));
  const auto or_none = [&](const Var& x) { return x.defined() ? x : none; };
  return custom_op(
      out, {a.out, a.log_sum, or_none(b.out), or_none(b.log_sum), or_none(sinks)},
      [of, out](const Tensor& g, std::span<Tensor> grads) { join_backward(of, out, g, grads); });
}

}  // namespace attn
