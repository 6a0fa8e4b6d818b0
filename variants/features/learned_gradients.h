// Gradients of linear attention beside those of q, k and v: of the directions of feature maps,
// which every head, and every piece of one, first sums by itself; and of the scales of keys that
// gates give. The sums are added in order of the pieces, so that the same number of threads
// gives the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "variants/features/key_gates.h"
#include "variants/features/linear_chunks.h"

namespace attn {

class LearnedGradients {
 public:
  // grads of q, k, v, the gate, and the directions of queries and of keys.
  LearnedGradients(const LinearProblem& p, std::span<Tensor> grads)
      : p_(p),
        pieces_(p.pieces()),
        gate_(grads[3]),
        omega_(grads[4]),
        key_omega_(grads[5]),
        sums_(sums_for(omega_)),
        key_sums_(sums_for(key_omega_)) {
    if (gate_.defined()) log_scale_ = Tensor::zeros({p.total_heads(), p.kv_len});
  }

  int64_t task_of(int64_t head, int64_t piece) const { return head * pieces_ + piece; }
  bool shares() const { return !p_.map.key_omega.defined(); }  // one set of directions
  bool has_queries() const { return omega_.defined(); }
  bool has_keys() const { return gate_.defined() || (shares() ? omega_ : key_omega_).defined(); }
  real* of_queries(int64_t task) const { return part(sums_, task); }
  real* of_keys(int64_t task) const { return part(shares() ? sums_ : key_sums_, task); }
  // Of keys from `at`, counted over all heads; null: not asked for.
  real* of_log_scale(int64_t at) const {
    return log_scale_.defined() ? log_scale_.data() + at : nullptr;
  }

  // Adds what all tasks summed.
  void add_up(const LinearSaved& saved) const {
    add_sums(sums_, omega_);
    add_sums(key_sums_, key_omega_);
    for (int64_t head = 0; gate_.defined() && head < p_.total_heads(); ++head) {
      const int64_t at = head * p_.kv_len;
      add_gate_gradient(saved.gate.data() + at, log_scale_.data() + at, p_.length(head),
                        gate_.data() + at);
    }
  }

 private:
  int64_t reals() const { return p_.map.omega.dim(1) * p_.width; }
  Tensor sums_for(const Tensor& grad) const {
    return grad.defined() ? Tensor::zeros({p_.total_heads() * pieces_, reals()}) : Tensor();
  }
  real* part(const Tensor& sums, int64_t task) const {
    return sums.defined() ? sums.data() + task * reals() : nullptr;
  }
  void add_sums(const Tensor& sums, const Tensor& grad) const {
    for (int64_t task = 0; grad.defined() && task < sums.dim(0); ++task) {
      const int64_t head = grad.dim(0) == 1 ? 0 : task / pieces_ % p_.heads;
      const real* const from = part(sums, task);
      real* const to = grad.data() + head * reals();
      for (int64_t i = 0; i < reals(); ++i) to[i] += from[i];
    }
  }

  const LinearProblem& p_;
  const int64_t pieces_;  // asked for once: inside of a task, threads() is another
  const Tensor &gate_, &omega_, &key_omega_;
  Tensor sums_, key_sums_;  // [batch·heads·pieces, directions·width]
  Tensor log_scale_;        // [batch·heads, kv_len]; zeros in the padding
};

}  // namespace attn
