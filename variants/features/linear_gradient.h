// The backward of linear attention for one chunk: the parts that the causal and the other form
// share. With G = dO/normalizer and g = -(dO·o)/normalizer, the gradient of a weight is dw_ij =
// G_i·v_j + g_i. The gradients of queries need the state S, z of the keys that they see; those of
// keys and values need its gradient, dS = Σ φ(q)ᵀG, dz = Σ φ(q)·g, over the queries that see them.
// Where a floor divides, g is 0, and the bound of the state gets a gradient instead. 2·m·d FLOPs
// each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/features/learned_gradients.h"
#include "variants/features/linear_chunks.h"

namespace attn {

// The parts of a worker's workspace. The gradient of a state has the layout of the state.
struct GradientLayout {
  explicit GradientLayout(const LinearProblem& p) {
    const int64_t chunk = p.chunk(), inside = p.causal ? chunk : 0;
    panels = parts.take(RowFeatures::panel_reals(p.map));
    key_panels = p.map.key_omega.defined() ? parts.take(RowFeatures::panel_reals(p.map)) : panels;
    map_scratch = parts.take(RowFeatures::scratch_reals(p.map, p.width));
    keys = parts.take(p.feature_reals());
    queries = parts.take(p.feature_reals());
    grad_phi = parts.take(chunk * p.feature_row());
    grad_out = parts.take(chunk * p.dim);
    scaled = parts.take(chunk * p.dim);
    grad_out_column = parts.take(chunk);
    scaled_column = parts.take(chunk);
    grad_out_bounds = parts.take(p.floored() ? chunk : 0);
    scaled_bounds = parts.take(p.floored() ? chunk : 0);
    grad_bounds = parts.take(p.floored() ? chunk : 0);
    scales = parts.take(chunk);
    rescale = parts.take(chunk);
    packed_state = parts.take(packed_reals(p.features, p.dim));
    packed_keys = parts.take(packed_reals(inside, p.features));
    packed_values = parts.take(packed_reals(inside, p.dim));
    weights = parts.take(inside * chunk);
    grad_weights = parts.take(inside * chunk);
    state = parts.take(p.state_reals());
  }
  WorkspaceParts parts;
  int64_t panels, key_panels, map_scratch, keys, queries, grad_phi, grad_out, scaled,
      grad_out_column, scaled_column, grad_out_bounds, scaled_bounds, grad_bounds, scales, rescale,
      packed_state, packed_keys, packed_values, weights, grad_weights, state;
};

class LinearGradient {
 public:
  LinearGradient(const LinearProblem& p, const LinearSaved& saved, const Tensor& grad_out,
                 std::span<Tensor> grads)
      : p_(p),
        s_(saved),
        layout_(p),
        grad_out_(grad_out),
        grad_q_(grads[0]),
        grad_k_(grads[1]),
        grad_v_(grads[2]),
        learned_(p, grads) {}

 protected:
  // One head, or a piece of it, which has gradients of directions of its own.
  struct Head {
    int64_t number;
    RowFeatures queries, keys;
    real *grad_omega, *grad_key_omega;
  };
  Head head_of(int64_t head, real* work, int64_t piece = 0) const {
    const RowFeatures queries(p_.map, p_.width, head % p_.heads, work + layout_.panels);
    const int64_t task = learned_.task_of(head, piece);
    return {head, queries, queries.of_keys(p_.map, head % p_.heads, work + layout_.key_panels),
            learned_.of_queries(task), learned_.of_keys(task)};
  }
  bool needs_queries() const { return grad_q_.defined() || learned_.has_queries(); }
  bool needs_phi_of_keys() const { return grad_k_.defined() || learned_.has_keys(); }
  bool needs_keys() const { return needs_phi_of_keys() || grad_v_.defined(); }

  FeatureRows queries_of(const Head& h, const Chunk& chunk, real* work) const {
    return make_rows(p_, h.queries, s_.q, queries_at(p_, h.number, chunk), work + layout_.queries,
                     nullptr);
  }
  FeatureRows keys_of(const Head& h, const Chunk& chunk, real* work) const {
    return make_rows(p_, h.keys, s_.k, keys_at(p_, h.number, chunk), work + layout_.keys, nullptr);
  }
  const real* scales_of(const Head& h, const Chunk& chunk) const {
    return p_.scaled ? s_.log_scale.data() + h.number * p_.kv_len + chunk.key : nullptr;
  }
  const real* values_of(const Head& h, const Chunk& chunk) const {
    return s_.v.data() + (h.number * p_.kv_len + chunk.key) * p_.dim;
  }

  // G, g and the gradients of the bounds of the queries of a chunk.
  AugmentedRows output_gradients(const Head& h, const Chunk& chunk, real* work) const {
    const Mark mark(Part::normalisation);
    real *const matrix = work + layout_.grad_out, *const column = work + layout_.grad_out_column,
                *const bounds = work + layout_.grad_out_bounds;
    for (int64_t r = 0; r < chunk.rows; ++r) {
      const int64_t at = h.number * p_.q_len + chunk.row + r;
      const Divisor divisor = p_.map.divisor();
      const real inverse = inverse_normalizer(s_.normalizer[at], divisor);
      const real* const grad = grad_out_.data() + at * p_.dim;
      scale_rows_by(grad, &inverse, 1, p_.dim, matrix + r * p_.dim);
      const bool replaced = is_replaced(s_.normalizer[at], divisor);
      const bool needed = !replaced || p_.floored();
      const real grad_divisor =
          needed ? -row_dot(grad, s_.out.data() + at * p_.dim, p_.dim) * inverse : real(0);
      column[r] = replaced ? real(0) : grad_divisor;
      if (p_.floored()) bounds[r] = replaced ? kLeastShare * grad_divisor : real(0);
    }
    return {matrix, column, bounds};
  }

  // Each row multiplied by its factor; null factors are 1.
  AugmentedRows scaled_rows(const AugmentedRows& augmented, const real* factors, int64_t rows,
                            real* work) const {
    if (!factors) return augmented;
    const Mark mark(Part::normalisation);
    scale_rows_by(augmented.matrix, factors, rows, p_.dim, work + layout_.scaled);
    scale_rows_by(augmented.column, factors, rows, 1, work + layout_.scaled_column);
    if (p_.floored())
      scale_rows_by(augmented.bounds, factors, rows, 1, work + layout_.scaled_bounds);
    return {work + layout_.scaled, work + layout_.scaled_column, work + layout_.scaled_bounds};
  }

  // The values and scales of the keys of a chunk, relative to M = running_max.
  AugmentedRows scaled_values(const Head& h, const Chunk& chunk, real running_max,
                              real* work) const {
    const Mark mark(Part::normalisation);
    real* const scales = work + layout_.scales;
    relative_scales(scales_of(h, chunk), running_max, 0, chunk.keys, scales);
    if (!p_.scaled) return {values_of(h, chunk), scales, scales};
    scale_rows_by(values_of(h, chunk), scales, chunk.keys, p_.dim, work + layout_.scaled);
    return {work + layout_.scaled, scales, scales};
  }

  // dφ of rows: matrix·Sᵀ + column·zᵀ. The state must be packed.
  void through_state(const AugmentedRows& augmented, int64_t rows, const real* state,
                     real* work) const {
    const int64_t m = p_.features;
    real *const grad = work + layout_.grad_phi, *const panels = work + layout_.packed_state;
    product(rows, m, p_.dim, {augmented.matrix, p_.dim}, packed(panels, p_.dim), grad,
            p_.feature_row());
    add_product(rows, m, 1, {augmented.column, 1}, {state + p_.sum_reals(), m}, grad,
                p_.feature_row());
    count_flops(2 * static_cast<double>(rows * m * (p_.dim + 1)));
  }
  void pack_state(const real* state, real* work) const {
    pack_transposed(state, p_.features, p_.dim, p_.dim, work + layout_.packed_state);
  }

  // From dφ of some rows, in the workspace, to dx and the gradients of directions.
  struct Into {
    const RowFeatures& features;
    const Tensor &x, &grad;
    real* grad_omega;
    const real* grad_log_scale;
  };
  void add_gradient(const Into& into, const RowsAt& which, const FeatureRows& phi,
                    real* work) const {
    real *const grad_phi = work + layout_.grad_phi, *const to =
                                                        into.grad.defined()
                                                            ? into.grad.data() + which.at * p_.width
                                                            : nullptr;
    if (!p_.given())
      return into.features.add_gradient({.x = into.x.data() + which.at * p_.width,
                                         .phi = phi.data,
                                         .first = which.position,
                                         .rows = which.rows,
                                         .grad_phi = grad_phi,
                                         .phi_row = phi.row,
                                         .grad_x = to,
                                         .grad_omega = into.grad_omega,
                                         .scratch = work + layout_.map_scratch,
                                         .grad_log_scale = into.grad_log_scale});
    const Mark mark(Part::elementwise);
    for (int64_t r = 0; to && r < which.rows; ++r)
      for (int64_t c = 0; c < p_.width; ++c)
        to[r * p_.width + c] += grad_phi[r * p_.feature_row() + c];
  }
  void add_query_gradient(const Head& h, const Chunk& chunk, const FeatureRows& phi,
                          real* work) const {
    add_gradient({h.queries, s_.q, grad_q_, h.grad_omega, nullptr}, queries_at(p_, h.number, chunk),
                 phi, work);
  }
  void add_key_gradient(const Head& h, const Chunk& chunk, const FeatureRows& phi,
                        real* work) const {
    const RowsAt which = keys_at(p_, h.number, chunk);
    if (real* const grad_log_scale = learned_.of_log_scale(which.at)) {
      const real* const grad_phi = work + layout_.grad_phi;
      dots_of_rows(which.rows, p_.features, phi.data, phi.row, grad_phi, p_.feature_row(),
                   grad_log_scale);
    }
    add_gradient({h.keys, s_.k, grad_k_, h.grad_key_omega,
                  p_.floored() ? work + layout_.grad_bounds : nullptr},
                 which, phi, work);
  }

  // The gradient of the bound reaches the log_scale of each key.
  void clear_bound_gradient(real* work) const {
    if (p_.floored()) std::fill_n(work + layout_.grad_bounds, p_.chunk(), real(0));
  }
  void add_bound_gradient(const real* scales, int64_t keys, const real* grad_state,
                          real* work) const {
    real* const to = work + layout_.grad_bounds;
    for (int64_t j = 0; p_.floored() && j < keys; ++j)
      to[j] += grad_state[p_.bound_at()] * scales[j];
  }

  // Adds the part of dv that comes from a grad_state.
  void add_value_gradient(const Head& h, const Chunk& chunk, const FeatureRows& keys,
                          const real* scales, const real* grad_state, real* work) const {
    real* const buffer = work + layout_.scaled;
    real* const to = grad_v_.data() + (h.number * p_.kv_len + chunk.key) * p_.dim;
    product(chunk.keys, p_.dim, p_.features, keys.left(), {grad_state, p_.dim}, buffer, p_.dim);
    count_flops(2 * static_cast<double>(chunk.keys * p_.features * p_.dim));
    const Mark mark(Part::normalisation);
    for (int64_t j = 0; j < chunk.keys; ++j)
      for (int64_t c = 0; c < p_.dim; ++c) to[j * p_.dim + c] += scales[j] * buffer[j * p_.dim + c];
  }

  const LinearProblem& p_;
  const LinearSaved& s_;
  const GradientLayout layout_;
  const Tensor &grad_out_, &grad_q_, &grad_k_, &grad_v_;
  const LearnedGradients learned_;
};

// Causal problems; the others are in linear_backward.cc.
void linear_causal_backward(const LinearProblem& problem, const LinearSaved& saved,
                            const Tensor& grad_out, std::span<Tensor> grads);

}  // namespace attn
