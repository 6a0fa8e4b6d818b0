// The recurrence of decayed linear attention and its gradient; see decayed_attention.h. 5·n·d²
// FLOPs forward, 12·n·d² backward in two sweeps: up for the gradient of q, down for those of k, v
// and g.
#include "variants/gated/decayed_attention.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "variants/gated/decayed_step.h"

namespace attn {
namespace {

struct DecayedProblem {
  Tensor q, k, v, log_decay;
  real scale;
  std::vector<int64_t> kv_lengths;

  int64_t heads() const { return q.dim(0) * q.dim(1); }
  int64_t len() const { return q.dim(2); }
  int64_t dim() const { return q.dim(3); }
  int64_t width() const { return log_decay.dim(3); }
  int64_t valid(int64_t head) const {
    return kv_lengths.empty() ? len() : kv_lengths[static_cast<size_t>(head / q.dim(1))];
  }
};

// The rows of one head, and its part of a worker's workspace.
struct DecayedHead {
  DecayedHead(const DecayedProblem& p, int64_t head, real* work)
      : dim(p.dim()),
        width(p.width()),
        len(p.len()),
        valid(p.valid(head)),
        scale(p.scale),
        q(p.q.data() + head * len * dim),
        k(p.k.data() + head * len * dim),
        v(p.v.data() + head * len * dim),
        log_decay(p.log_decay.data() + head * len * width),
        state(work),
        decay(state + padded_reals(dim * dim)) {
    std::fill_n(state, dim * dim, real(0));
  }
  static int64_t reals(int64_t dim) { return padded_reals(dim * dim) + padded_reals(dim); }

  const real* decays(int64_t t) const {
    exp_row(width, log_decay + t * width, 1, 0, decay);
    if (width == 1) std::fill_n(decay + 1, dim - 1, decay[0]);
    return decay;
  }
  void advance(int64_t t) const {
    decay_and_write(dim, k + t * dim, v + t * dim, decays(t), state);
  }
  void count(int64_t per_key, int64_t per_query) const {
    count_flops(static_cast<double>(dim * dim * (valid * per_key + len * per_query)));
  }

  int64_t dim, width, len, valid;
  real scale;
  const real *q, *k, *v, *log_decay;
  real *state, *decay;  // [dim, dim], [dim]
};

Tensor forward(const DecayedProblem& p) {
  Tensor out(p.q.shape());
  run_tasks(p.heads(), DecayedHead::reals(p.dim()), [&](int64_t head, real* work) {
    const Mark mark(Part::recurrence);
    const DecayedHead h(p, head, work);
    for (int64_t t = 0; t < h.len; ++t) {
      if (t < h.valid) h.advance(t);
      read_state(h.dim, h.scale, h.q + t * h.dim, h.state, out.data() + (head * h.len + t) * h.dim);
    }
    h.count(3, 2);
  });
  return out;
}

// Where gradients of one head are added; null: not wanted.
struct DecayedGradients {
  real *q, *k, *v, *log_decay;
};

// dq_t = τ·S_t·dO_t; keeps q_t·dq_t of each channel in `products` [len, dim].
void sweep_up(const DecayedHead& h, const real* grad, const DecayedGradients& to, real* products) {
  for (int64_t t = 0; t < h.len; ++t) {
    if (t < h.valid) h.advance(t);
    for (int64_t c = 0; c < h.dim; ++c) {
      const int64_t at = t * h.dim + c;
      const real slope = h.scale * row_dot(h.state + c * h.dim, grad + t * h.dim, h.dim);
      products[at] = h.q[at] * slope;
      if (to.q) to.q[at] += slope;
    }
  }
  h.count(3, 2);
}

// The gradient dS of the state: dk_t = dS·v_t, dv_t = k_t·dS; `sums` holds dg of each channel.
void sweep_down(const DecayedHead& h, const real* grad, const DecayedGradients& to,
                const real* products, double* sums) {
  const int64_t dim = h.dim;
  std::fill_n(h.state, dim * dim, real(0));
  std::fill_n(sums, dim, 0.0);
  for (int64_t t = h.len - 1; t >= 0; --t) {
    const bool valid = t < h.valid;
    const real* const decay = valid ? h.decays(t) : nullptr;
    double total = 0;
    for (int64_t c = 0; c < dim; ++c) {
      const int64_t at = t * dim + c;
      real* const row = h.state + c * dim;
      const real query = h.scale * h.q[at];
      ATTN_INDEPENDENT
      for (int64_t j = 0; j < dim; ++j) row[j] += query * grad[t * dim + j];
      sums[c] += static_cast<double>(products[at]);
      if (!valid) continue;
      const real slope = row_dot(row, h.v + t * dim, dim), key = h.k[at], a = decay[c];
      sums[c] -= static_cast<double>(key) * static_cast<double>(slope);
      total += sums[c];
      if (to.k) to.k[at] += slope;
      if (to.v) {
        real* const dv = to.v + t * dim;
        ATTN_INDEPENDENT
        for (int64_t j = 0; j < dim; ++j) dv[j] += key * row[j];
      }
      if (to.log_decay && h.width > 1) to.log_decay[at] += static_cast<real>(sums[c]);
      ATTN_INDEPENDENT
      for (int64_t j = 0; j < dim; ++j) row[j] *= a;
    }
    if (valid && to.log_decay && h.width == 1) to.log_decay[t] += static_cast<real>(total);
  }
  h.count(5, 2);
}

void backward(const DecayedProblem& p, const Tensor& grad, std::span<Tensor> grads) {
  const int64_t len = p.len(), dim = p.dim(), width = p.width();
  const int64_t sums = DecayedHead::reals(dim),  // doubles, after the state and the decays
      products = sums + padded_reals(dim * static_cast<int64_t>(sizeof(double) / sizeof(real)));
  run_tasks(p.heads(), products + len * dim, [&](int64_t head, real* work) {
    const Mark mark(Part::recurrence);
    const DecayedHead h(p, head, work);
    const auto part = [&](size_t i, int64_t cols) {
      return grads[i].defined() ? grads[i].data() + head * len * cols : nullptr;
    };
    const DecayedGradients to{part(0, dim), part(1, dim), part(2, dim), part(3, width)};
    const real* const grad_out = grad.data() + head * len * dim;
    sweep_up(h, grad_out, to, work + products);
    sweep_down(h, grad_out, to, work + products, reinterpret_cast<double*>(work + sums));
  });
}

}  // namespace

Var decayed_attention(const Var& q, const Var& k, const Var& v, const Var& log_decay, double scale,
                      const std::vector<int64_t>& kv_lengths) {
  const int64_t width = log_decay.dim(3);
  ATTN_CHECK(q.shape() == k.shape() && q.shape() == v.shape() &&
                 log_decay.shape() == q.shape().with(3, width) && (width == 1 || width == q.dim(3)),
             "decayed attention: q {}, k {}, v {} and log-decays {} do not fit", q.shape().str(),
             k.shape().str(), v.shape().str(), log_decay.shape().str());
  const DecayedProblem p{
      q.value(), k.value(), v.value(), log_decay.value(), static_cast<real>(scale), kv_lengths};
  return custom_op(forward(p), {q, k, v, log_decay},
                   [p](const Tensor& grad, std::span<Tensor> grads) { backward(p, grad, grads); });
}

Cost decayed_cost(const AttentionShape& s) {
  const auto heads = static_cast<double>(s.batch * s.heads), d = static_cast<double>(s.head_dim),
             rows = heads * static_cast<double>(s.q_len);
  Cost cost;
  cost.flops = 5 * rows * d * d;
  cost.backward_flops = 12 * rows * d * d;
  cost.bytes = sizeof(real) * 4 * rows * d;
  cost.peak_bytes =
      sizeof(real) * rows * d +
      static_cast<double>(workspace_bytes(s.batch * s.heads, DecayedHead::reals(s.head_dim)));
  cost.state_bytes = sizeof(real) * heads * d * d;
  return cost;
}

}  // namespace attn
