// The problem that the forward and the backward of additive attention share, and the backward.
#pragma once

#include <span>

#include "core/simd/attention_rows.h"
#include "core/tensor/tensor.h"
#include "variants/scores/additive_scores.h"
#include "variants/scores/prefix_plane.h"

namespace attn {

struct AdditiveProblem {
  PrefixPlane plane;   // its `dim` is the number of units
  Tensor a, b, w, v;   // as in additive_attention
  Tensor scaled;       // [heads, padded units]: -2·log2(e)·w, since logits are in units of log2
  bool large = false;  // as in AdditiveRows

  AdditiveProblem(const Tensor& queries, const Tensor& keys, const Tensor& weight,
                  const Tensor& values, const Mask& mask);

  int64_t padded() const { return padded_units(plane.dim); }
  const real* query(int64_t h, int64_t i) const {
    return a.data() + (h * plane.q_len + i) * plane.dim;
  }
  const real* key(int64_t h, int64_t j) const {
    return b.data() + (h * plane.kv_len + j) * plane.dim;
  }
  const real* value(int64_t h, int64_t j) const {
    return v.data() + (h * plane.kv_len + j) * plane.value_dim;
  }
  // Logits of a transformed query and the keys of a panel, up to a constant of the row.
  void scores(int64_t h, const real* query_row, const real* panel, real* out) const {
    const real* const weight = scaled.data() + h % plane.heads * padded();
    additive_scores({large, padded(), query_row, panel}, weight, out);
  }
};

inline constexpr int64_t kAdditiveRows = 24;  // queries of a strip in the backward

// Adds the gradients of a, b, weight and v to grads[0..3]; an undefined one is skipped. log_sum is
// [batch, heads, q_len] in units of log2, +infinity where a query sees no key.
void additive_backward(const AdditiveProblem& problem, const Tensor& out, const Tensor& log_sum,
                       const Tensor& grad_out, std::span<Tensor> grads);

}  // namespace attn
