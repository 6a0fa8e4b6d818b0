// Backward of causal linear attention: a forward sweep over the chunks with the state computes dq;
// a reverse sweep with the gradient of the state computes dk and dv. Only M is stored for each
// chunk; both sweeps recompute the features. About 10·n·m·d FLOPs, 12·n·m·d where a map projects,
// and about 258·n·(m+d) inside chunks.
#include "core/base/marks.h"
#include "variants/features/linear_gradient.h"
#include "variants/features/running_maxima.h"

namespace attn {
namespace {

class Sweeps final : public LinearGradient {
 public:
  Sweeps(const LinearProblem& p, const LinearSaved& saved, const Tensor& grad_out,
         std::span<Tensor> grads)
      : LinearGradient(p, saved, grad_out, grads), maxima_(p, saved) {}

  void run() const {
    const int64_t pieces = p_.pieces();
    if (pieces > 1) return run_pieces(pieces);
    run_tasks(p_.total_heads(), layout_.parts.total(), [&](int64_t head, real* work) {
      const Head h = head_of(head, work);
      real* const state = work + layout_.state;
      clear_state(p_, state);
      if (needs_queries()) sweep_queries(h, 0, 1, state, work);
      clear_state(p_, state);
      if (needs_keys()) sweep_keys(h, 0, 1, state, work);
    });
    learned_.add_up(s_);
  }

 private:
  real before(const Head& h, int64_t c) const { return maxima_.before(h.number, c); }
  real after(const Head& h, int64_t c) const { return maxima_.after(h.number, c); }

  // The pairs inside a chunk; masked ones are 0. grad_weights_ij = dw_ij·scale and, if keys are
  // given, weights_ij = w_ij·scale, where scale = exp(log_scale_j - M_i); rescale_i = exp(M before
  // - M_i). With keys, also the part of grad_bounds that comes from these queries.
  void make_inside(const Head& h, const Chunk& chunk, real running_max, const AugmentedRows& grads,
                   const FeatureRows* queries, const FeatureRows* keys, real* work) const {
    const int64_t m = p_.features, d = p_.dim, row_reals = p_.chunk();
    real *const panels = work + layout_.packed_values, *const rescale = work + layout_.rescale;
    pack_transposed(values_of(h, chunk), chunk.keys, d, d, panels);
    if (keys) pack_transposed(keys->data, chunk.keys, m, keys->row, work + layout_.packed_keys);
    if (keys) clear_bound_gradient(work);
    RunningScales running(scales_of(h, chunk), running_max, work + layout_.scales);
    for (int64_t first = 0; first < chunk.rows; first += LinearProblem::kChunkStrip) {
      const int64_t count = std::min(LinearProblem::kChunkStrip, chunk.rows - first),
                    seen = chunk.visible(p_, first + count - 1);
      real *const grad = work + layout_.grad_weights + first * row_reals, *const weight =
                                                                              work +
                                                                              layout_.weights +
                                                                              first * row_reals;
      product(count, seen, d, {grads.matrix + first * d, d}, packed(panels, d), grad, row_reals);
      if (keys)
        product(count, seen, m, queries->left(first), packed(work + layout_.packed_keys, m), weight,
                row_reals);
      const Mark mark(Part::masks);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t visible = chunk.visible(p_, first + r);
        rescale[first + r] = scale_between(running_max, running.advance(visible));
        real* const row = grad + r * row_reals;
        for (int64_t j = 0; j < visible; ++j) row[j] += grads.column[first + r];
        running.apply(row, chunk.keys);
        if (keys) running.apply(weight + r * row_reals, chunk.keys);
        if (keys && p_.floored())
          running.add_to(work + layout_.grad_bounds, grads.bounds[first + r]);
      }
      count_flops(2 * static_cast<double>(count * seen * (d + (keys ? m : 0))));
    }
  }

  // Causal: dq, chunk after chunk, with the state of the keys before.
  void sweep_queries(const Head& h, int64_t piece, int64_t pieces, real* state, real* work) const {
    const int64_t m = p_.features;
    for_chunks(p_.key_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows keys = keys_of(h, chunk, work);
      if (chunk.rows > 0) {
        const FeatureRows queries = queries_of(h, chunk, work);
        const AugmentedRows grads = output_gradients(h, chunk, work);
        make_inside(h, chunk, before(h, c), grads, nullptr, nullptr, work);
        real* const grad = work + layout_.grad_phi;
        const bool any = before(h, c) != -kInfinity;
        if (any) {
          pack_state(state, work);
          through_state(
              scaled_rows(grads, p_.scaled ? work + layout_.rescale : nullptr, chunk.rows, work),
              chunk.rows, state, work);
        }
        const real none[LinearProblem::kChunkStrip] = {};
        for (int64_t r = 0; r < chunk.rows; r += LinearProblem::kChunkStrip) {
          const int64_t count = std::min(LinearProblem::kChunkStrip, chunk.rows - r),
                        seen = chunk.visible(p_, r + count - 1);
          add_product(count, m, seen, {work + layout_.grad_weights + r * p_.chunk(), p_.chunk()},
                      keys.right(), grad + r * p_.feature_row(), p_.feature_row(),
                      any ? nullptr : none);
          count_flops(2 * static_cast<double>(count * seen * m));
        }
        add_query_gradient(h, chunk, queries, work);
      }
      if (c + 1 == p_.key_chunks()) return;
      add_chunk_keys(h, chunk, keys, state, work);
      if (p_.gated) state[p_.state_reals() - 1] = before(h, c + 1);
    });
  }

  void add_chunk_keys(const Head& h, const Chunk& chunk, const FeatureRows& keys, real* state,
                      real* work) const {
    if (chunk.keys == 0) return;
    const real running_max = raise_running_max(p_, state, scales_of(h, chunk), chunk.keys);
    const AugmentedRows weighted = scaled_values(h, chunk, running_max, work);
    add_to_state(p_, keys, weighted, chunk.keys, state);
  }

  // Causal: dk and dv, from the last chunk to the first, with the grad_state of the later queries,
  // which is kept relative to M at the chunk's end.
  void sweep_keys(const Head& h, int64_t piece, int64_t pieces, real* grad_state,
                  real* work) const {
    const int64_t chunks = p_.key_chunks(), first = chunks * piece / pieces;
    for (int64_t c = chunks * (piece + 1) / pieces - 1; c >= first; --c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows keys = keys_of(h, chunk, work), queries = queries_of(h, chunk, work);
      const AugmentedRows grads = output_gradients(h, chunk, work);
      make_inside(h, chunk, before(h, c), grads, &queries, &keys, work);
      add_key_gradients(h, c, chunk, keys, queries, grads, grad_state, work);
      if (c > 0) add_chunk_queries(h, c, chunk, queries, grads, grad_state, work);
    }
  }

  void add_chunk_queries(const Head& h, int64_t c, const Chunk& chunk, const FeatureRows& queries,
                         const AugmentedRows& grads, real* grad_state, real* work) const {
    const real factor = scale_between(before(h, c), after(h, c));
    if (factor != 1)
      for (int64_t i = 0; i < p_.state_reals() - 1; ++i) grad_state[i] *= factor;
    const AugmentedRows back =
        scaled_rows(grads, p_.scaled ? work + layout_.rescale : nullptr, chunk.rows, work);
    add_to_state(p_, queries, back, chunk.rows, grad_state);
  }

  void add_key_gradients(const Head& h, int64_t c, const Chunk& chunk, const FeatureRows& keys,
                         const FeatureRows& queries, const AugmentedRows& grads,
                         const real* grad_state, real* work) const {
    const int64_t m = p_.features, d = p_.dim, at = h.number * p_.kv_len + chunk.key;
    const bool of_phi = needs_phi_of_keys();
    real* const grad = work + layout_.grad_phi;
    const bool any = c + 1 < p_.key_chunks();  // queries after this chunk
    if (any) {
      const AugmentedRows weighted = scaled_values(h, chunk, after(h, c), work);
      if (of_phi) {
        pack_state(grad_state, work);
        through_state(weighted, chunk.keys, grad_state, work);
        add_bound_gradient(weighted.column, chunk.keys, grad_state, work);
      }
      if (grad_v_.defined()) add_value_gradient(h, chunk, keys, weighted.column, grad_state, work);
    }
    const real none[LinearProblem::kChunkStrip] = {};
    for (int64_t j = 0; j < chunk.keys; j += LinearProblem::kChunkStrip) {
      const int64_t count = std::min(LinearProblem::kChunkStrip, chunk.keys - j),
                    first = chunk.first_row(p_, j), rows = chunk.rows - first,
                    pair = first * p_.chunk() + j;
      if (of_phi)
        add_product(count, m, rows, {work + layout_.grad_weights + pair, 1, p_.chunk()},
                    {queries.data + first * queries.row, queries.row}, grad + j * p_.feature_row(),
                    p_.feature_row(), any ? nullptr : none);
      if (grad_v_.defined())
        add_product(count, d, rows, {work + layout_.weights + pair, 1, p_.chunk()},
                    {grads.matrix + first * d, d}, grad_v_.data() + (at + j) * d, d);
      count_flops(
          2 * static_cast<double>(count * rows * ((of_phi ? m : 0) + (grad_v_.defined() ? d : 0))));
    }
    if (of_phi) add_key_gradient(h, chunk, keys, work);
  }

  // Every piece first computes the sums of its own keys and queries. States are then accumulated
  // forwards, grad_states backwards.
  void run_pieces(int64_t pieces) const {
    const int64_t heads = p_.total_heads(), size = p_.state_reals(), slots = pieces + 1;
    const Tensor states({heads, slots, size}), grad_states({heads, slots, size});
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      const int64_t piece = task % pieces, slot = task / pieces * slots + piece;
      sum_piece(head_of(task / pieces, work), piece, pieces, states.data() + (slot + 1) * size,
                grad_states.data() + slot * size, work);
    });
    for (int64_t head = 0; head < heads; ++head) {
      real* const state = states.data() + head * slots * size;
      clear_state(p_, state);
      for (int64_t i = 1; i < slots; ++i)
        merge_states(p_, state + (i - 1) * size, state + i * size);
      real* const grad_state = grad_states.data() + head * slots * size;
      clear_state(p_, grad_state + pieces * size);
      for (int64_t i = pieces - 1; i > 0; --i) {
        const int64_t chunks = p_.key_chunks();
        const real factor = scale_between(maxima_.before(head, chunks * i / pieces),
                                          maxima_.before(head, chunks * (i + 1) / pieces));
        for (int64_t n = 0; n < size - 1; ++n)
          grad_state[i * size + n] += factor * grad_state[(i + 1) * size + n];
      }
    }
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      const int64_t piece = task % pieces, slot = task / pieces * slots + piece;
      const Head h = head_of(task / pieces, work, piece);
      if (needs_queries()) sweep_queries(h, piece, pieces, states.data() + slot * size, work);
      if (needs_keys()) sweep_keys(h, piece, pieces, grad_states.data() + (slot + 1) * size, work);
    });
    learned_.add_up(s_);
  }

  void sum_piece(const Head& h, int64_t piece, int64_t pieces, real* state, real* grad_state,
                 real* work) const {
    clear_state(p_, state);
    if (needs_queries() && piece + 1 < pieces)
      for_chunks(p_.key_chunks(), piece, pieces, [&](int64_t c) {
        const Chunk chunk = chunk_of(p_, h.number, c);
        add_chunk_keys(h, chunk, keys_of(h, chunk, work), state, work);
      });
    clear_state(p_, grad_state);
    const int64_t chunks = p_.key_chunks(), first = chunks * piece / pieces;
    if (!needs_keys() || piece == 0) return;
    for (int64_t c = chunks * (piece + 1) / pieces - 1; c >= first; --c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      real* const rescale = work + layout_.rescale;
      RunningScales running(scales_of(h, chunk), before(h, c), work + layout_.scales);
      for (int64_t r = 0; r < chunk.rows; ++r)
        rescale[r] = scale_between(before(h, c), running.advance(chunk.visible(p_, r)));
      add_chunk_queries(h, c, chunk, queries_of(h, chunk, work), output_gradients(h, chunk, work),
                        grad_state, work);
    }
  }

  const RunningMaxima maxima_;
};

}  // namespace

void linear_causal_backward(const LinearProblem& problem, const LinearSaved& saved,
                            const Tensor& grad_out, std::span<Tensor> grads) {
  Sweeps(problem, saved, grad_out, grads).run();
}

}  // namespace attn
