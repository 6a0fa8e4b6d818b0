// Checks what linear attention is given, runs its forward and records its backward.
#include "variants/features/linear_attention.h"

#include "core/base/check.h"
#include "core/base/counters.h"
#include "variants/features/linear_chunks.h"

namespace attn {
namespace {

LinearProblem problem_of(const Var& q, const Var& k, const Var& v, const LinearOptions& options) {
  LinearProblem p;
  p.batch = q.dim(0), p.heads = q.dim(1), p.q_len = q.dim(2), p.width = q.dim(3);
  p.kv_len = k.dim(2), p.dim = v.dim(3);
  p.features = options.map.features(p.width);
  p.causal = options.causal, p.kv_lengths = options.kv_lengths, p.map = options.map;
  p.gated = options.gate.defined();
  p.scaled = options.log_scale.defined() || p.map.has_log_scale() || p.gated;
  ATTN_CHECK(k.shape() == q.shape().with(2, p.kv_len) && v.shape() == k.shape().with(3, p.dim),
             "linear attention: q {}, k {} and v {} do not fit", q.shape().str(), k.shape().str(),
             v.shape().str());
  ATTN_CHECK(p.given() || !options.log_scale.defined(),
             "linear attention: a log_scale of {} beside a map that makes its own",
             options.log_scale.shape().str());
  ATTN_CHECK(!options.log_scale.defined() ||
                 options.log_scale.shape() == Shape({p.batch, p.heads, p.kv_len}),
             "linear attention: a log_scale of {} beside keys of {}",
             options.log_scale.shape().str(), k.shape().str());
  ATTN_CHECK(!p.gated || (p.causal && p.q_len == p.kv_len && !options.log_scale.defined() &&
                          !p.map.has_log_scale() && options.gate.shape() == k.shape().with(3, 1)),
             "linear attention: gates of {} need causal keys {} without other scales",
             options.gate.defined() ? options.gate.shape().str() : "", k.shape().str());
  p.map.check_fits(q.shape());
  return p;
}

}  // namespace

Var linear_attention(const Var& q, const Var& k, const Var& v, const LinearOptions& options) {
  const LinearProblem p = problem_of(q, k, v, options);
  const FeatureMap& map = options.map;
  const bool keep = recording({q, k, v, options.gate, map.omega, map.key_omega});
  LinearSaved saved{.q = q.value(), .k = k.value(), .v = v.value()};
  saved.out = Tensor(saved.q.shape().with(3, p.dim));
  saved.log_scale = options.log_scale;
  if (p.gated) saved.gate = options.gate.value();
  if (keep) {
    saved.normalizer = Tensor({p.total_heads(), p.q_len});
    if (p.map.has_log_scale() || p.gated) saved.log_scale = Tensor({p.batch, p.heads, p.kv_len});
    if (p.gated) saved.shifts = Tensor({p.total_heads(), p.key_chunks()});
    if (!p.causal) saved.states = Tensor({p.total_heads(), p.state_reals()});
  }
  if (p.causal && p.offset() < 0) {  // the first queries see nothing and belong to no chunk
    saved.out.fill(0);
    if (keep) saved.normalizer.fill(0);
  }
  linear_forward(p, saved, keep);
  count_bytes(static_cast<double>(sizeof(real)) *
              static_cast<double>(saved.q.size() + saved.k.size() + saved.v.size() +
                                  saved.out.size() + (p.gated ? saved.gate.size() : 0)));
  if (!keep) return Var(saved.out);
  return custom_op(saved.out, {q, k, v, options.gate, map.omega, map.key_omega},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     linear_backward(p, saved, grad_out, grads);
                   });
}

}  // namespace attn
