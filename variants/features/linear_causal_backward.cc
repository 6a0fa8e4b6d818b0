// Backward of causal linear attention: a sweep forwards with the state for dq, one backwards with
// the mirror for dk and dv; nothing is stored per chunk but M. Features are made in both. About
// 10·n·m·d FLOPs, 12·n·m·d where a map projects, and about 258·n·(m+d) inside chunks.
#include "variants/features/linear_gradient.h"

namespace attn {
namespace {

class Sweeps final : public LinearGradient {
 public:
  Sweeps(const LinearProblem& p, const LinearSaved& saved, const Tensor& grad_out,
         std::span<Tensor> grads)
      : LinearGradient(p, saved, grad_out, grads) {
    find_tops();
  }

  void run() const {
    const int64_t pieces = p_.pieces();
    if (pieces > 1) return run_pieces(pieces);
    run_tasks(p_.total_heads(), layout_.parts.total(), [&](int64_t head, real* work) {
      const Head h = head_of(head, work);
      real* const state = work + layout_.state;
      clear_state(p_, state);
      if (grad_q_.defined()) sweep_queries(h, 0, 1, state, work);
      clear_state(p_, state);
      if (needs_keys()) sweep_keys(h, 0, 1, state, work);
    });
  }

 private:
  // M of the keys before each chunk and, at the end, of all.
  void find_tops() {
    const int64_t heads = p_.total_heads(), chunks = p_.key_chunks();
    tops_ = Tensor({heads, chunks + 1});
    for (int64_t head = 0; head < heads; ++head) {
      real top = -kInfinity;
      for (int64_t c = 0; c < chunks; ++c) {
        tops_[head * (chunks + 1) + c] = top;
        const Chunk chunk = chunk_of(p_, head, c);
        const real* const scales = p_.scaled ? s_.log_scale.data() + head * p_.kv_len : nullptr;
        if (chunk.keys > 0)
          top = scales ? std::max(top, max_in_row(scales + chunk.key, chunk.keys)) : real(0);
      }
      tops_[head * (chunks + 1) + chunks] = top;
    }
  }
  real before(const Head& h, int64_t c) const {
    return tops_[h.number * (p_.key_chunks() + 1) + c];
  }

  // The pairs inside a chunk, hidden ones 0: slopes_ij = dw_ij·scale and, if asked for, weights_ij
  // = w_ij·scale, where scale = exp(log_scale_j - M_i); and each row's share exp(M before - M_i).
  void make_inside(const Head& h, const Chunk& chunk, real top, const Slopes& slopes,
                   const FeatureRows* queries, const FeatureRows* keys, real* work) const {
    const int64_t m = p_.features, d = p_.dim, row_reals = p_.chunk();
    real *const panels = work + layout_.packed_values, *const shares = work + layout_.shares;
    pack_transposed(values_of(h, chunk), chunk.keys, d, d, panels);
    if (keys) pack_transposed(keys->data, chunk.keys, m, keys->row, work + layout_.packed_keys);
    RunningScales running(scales_of(h, chunk), top, work + layout_.scales);
    for (int64_t first = 0; first < chunk.rows; first += LinearProblem::kStrip) {
      const int64_t count = std::min(LinearProblem::kStrip, chunk.rows - first),
                    seen = chunk.visible(p_, first + count - 1);
      real *const grad = work + layout_.slopes + first * row_reals, *const weight =
                                                                        work + layout_.weights +
                                                                        first * row_reals;
      product(count, seen, d, {slopes.matrix + first * d, d}, packed(panels, d), grad, row_reals);
      if (keys)
        product(count, seen, m, queries->left(first), packed(work + layout_.packed_keys, m), weight,
                row_reals);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t visible = chunk.visible(p_, first + r);
        shares[first + r] = scale_between(top, running.see(visible));
        real* const row = grad + r * row_reals;
        for (int64_t j = 0; j < visible; ++j) row[j] += slopes.column[first + r];
        running.apply(row, chunk.keys);
        if (keys) running.apply(weight + r * row_reals, chunk.keys);
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
        const Slopes slopes = slopes_of(h, chunk, work);
        make_inside(h, chunk, before(h, c), slopes, nullptr, nullptr, work);
        real* const grad = work + layout_.grad_phi;
        const bool any = before(h, c) != -kInfinity;
        if (any) {
          pack_state(state, work);
          through_state(
              scaled(slopes, p_.scaled ? work + layout_.shares : nullptr, chunk.rows, work),
              chunk.rows, state, work);
        }
        const real none[LinearProblem::kStrip] = {};
        for (int64_t r = 0; r < chunk.rows; r += LinearProblem::kStrip) {
          const int64_t count = std::min(LinearProblem::kStrip, chunk.rows - r),
                        seen = chunk.visible(p_, r + count - 1);
          add_product(count, m, seen, {work + layout_.slopes + r * p_.chunk(), p_.chunk()},
                      keys.right(), grad + r * p_.feature_row(), p_.feature_row(),
                      any ? nullptr : none);
          count_flops(2 * static_cast<double>(count * seen * m));
        }
        add_gradient(h, s_.q, grad_q_, h.number * p_.q_len + chunk.row, queries, chunk.rows, work);
      }
      if (c + 1 < p_.key_chunks()) add_chunk_keys(h, chunk, keys, state, work);
    });
  }

  void add_chunk_keys(const Head& h, const Chunk& chunk, const FeatureRows& keys, real* state,
                      real* work) const {
    if (chunk.keys == 0) return;
    const real top = raise_top(p_, state, scales_of(h, chunk), chunk.keys);
    const Slopes brought = keyed(h, chunk, top, work);
    add_to_state(p_, keys, brought.matrix, brought.column, chunk.keys, state);
  }

  // Causal: dk and dv, from the last chunk to the first, with the mirror of the queries after,
  // which is kept relative to M at the chunk's end.
  void sweep_keys(const Head& h, int64_t piece, int64_t pieces, real* mirror, real* work) const {
    const int64_t chunks = p_.key_chunks(), first = chunks * piece / pieces;
    for (int64_t c = chunks * (piece + 1) / pieces - 1; c >= first; --c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows keys = keys_of(h, chunk, work), queries = queries_of(h, chunk, work);
      const Slopes slopes = slopes_of(h, chunk, work);
      make_inside(h, chunk, before(h, c), slopes, &queries, &keys, work);
      add_key_gradients(h, c, chunk, keys, queries, slopes, mirror, work);
      if (c > 0) add_chunk_queries(h, c, chunk, queries, slopes, mirror, work);
    }
  }

  void add_chunk_queries(const Head& h, int64_t c, const Chunk& chunk, const FeatureRows& queries,
                         const Slopes& slopes, real* mirror, real* work) const {
    const real factor = scale_between(before(h, c), before(h, c + 1));
    if (factor != 1)
      for (int64_t i = 0; i < p_.state_reals() - 1; ++i) mirror[i] *= factor;
    const Slopes back =
        scaled(slopes, p_.scaled ? work + layout_.shares : nullptr, chunk.rows, work);
    add_to_state(p_, queries, back.matrix, back.column, chunk.rows, mirror);
  }

  void add_key_gradients(const Head& h, int64_t c, const Chunk& chunk, const FeatureRows& keys,
                         const FeatureRows& queries, const Slopes& slopes, const real* mirror,
                         real* work) const {
    const int64_t m = p_.features, d = p_.dim, at = h.number * p_.kv_len + chunk.key;
    real* const grad = work + layout_.grad_phi;
    const bool any = c + 1 < p_.key_chunks();  // queries after this chunk
    if (any) {
      const Slopes brought = keyed(h, chunk, before(h, c + 1), work);
      if (grad_k_.defined()) {
        pack_state(mirror, work);
        through_state(brought, chunk.keys, mirror, work);
      }
      if (grad_v_.defined()) add_value_gradient(h, chunk, keys, brought.column, mirror, work);
    }
    const real none[LinearProblem::kStrip] = {};
    for (int64_t j = 0; j < chunk.keys; j += LinearProblem::kStrip) {
      const int64_t count = std::min(LinearProblem::kStrip, chunk.keys - j),
                    first = chunk.first_row(p_, j), rows = chunk.rows - first,
                    pair = first * p_.chunk() + j;
      if (grad_k_.defined())
        add_product(count, m, rows, {work + layout_.slopes + pair, 1, p_.chunk()},
                    {queries.data + first * queries.row, queries.row}, grad + j * p_.feature_row(),
                    p_.feature_row(), any ? nullptr : none);
      if (grad_v_.defined())
        add_product(count, d, rows, {work + layout_.weights + pair, 1, p_.chunk()},
                    {slopes.matrix + first * d, d}, grad_v_.data() + (at + j) * d, d);
      count_flops(2 *
                  static_cast<double>(count * rows *
                                      ((grad_k_.defined() ? m : 0) + (grad_v_.defined() ? d : 0))));
    }
    if (grad_k_.defined()) add_gradient(h, s_.k, grad_k_, at, keys, chunk.keys, work);
  }

  // Every piece first sums its own keys and queries; states then run forwards, mirrors backwards.
  void run_pieces(int64_t pieces) const {
    const int64_t heads = p_.total_heads(), size = p_.state_reals(), slots = pieces + 1;
    const Tensor states({heads, slots, size}), mirrors({heads, slots, size});
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      const int64_t piece = task % pieces, slot = task / pieces * slots + piece;
      sum_piece(head_of(task / pieces, work), piece, pieces, states.data() + (slot + 1) * size,
                mirrors.data() + slot * size, work);
    });
    for (int64_t head = 0; head < heads; ++head) {
      real* const state = states.data() + head * slots * size;
      clear_state(p_, state);
      for (int64_t i = 1; i < slots; ++i)
        merge_states(p_, state + (i - 1) * size, state + i * size);
      real* const mirror = mirrors.data() + head * slots * size;
      clear_state(p_, mirror + pieces * size);
      for (int64_t i = pieces - 1; i > 0; --i) {
        const real* const tops = tops_.data() + head * (p_.key_chunks() + 1);
        const real factor = scale_between(tops[p_.key_chunks() * i / pieces],
                                          tops[p_.key_chunks() * (i + 1) / pieces]);
        for (int64_t n = 0; n < size - 1; ++n)
          mirror[i * size + n] += factor * mirror[(i + 1) * size + n];
      }
    }
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      const int64_t piece = task % pieces, slot = task / pieces * slots + piece;
      const Head h = head_of(task / pieces, work);
      if (grad_q_.defined()) sweep_queries(h, piece, pieces, states.data() + slot * size, work);
      if (needs_keys()) sweep_keys(h, piece, pieces, mirrors.data() + (slot + 1) * size, work);
    });
  }

  void sum_piece(const Head& h, int64_t piece, int64_t pieces, real* state, real* mirror,
                 real* work) const {
    clear_state(p_, state);
    if (grad_q_.defined() && piece + 1 < pieces)
      for_chunks(p_.key_chunks(), piece, pieces, [&](int64_t c) {
        const Chunk chunk = chunk_of(p_, h.number, c);
        add_chunk_keys(h, chunk, keys_of(h, chunk, work), state, work);
      });
    clear_state(p_, mirror);
    const int64_t chunks = p_.key_chunks(), first = chunks * piece / pieces;
    if (!needs_keys() || piece == 0) return;
    for (int64_t c = chunks * (piece + 1) / pieces - 1; c >= first; --c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      real* const shares = work + layout_.shares;
      RunningScales running(scales_of(h, chunk), before(h, c), work + layout_.scales);
      for (int64_t r = 0; r < chunk.rows; ++r)
        shares[r] = scale_between(before(h, c), running.see(chunk.visible(p_, r)));
      add_chunk_queries(h, c, chunk, queries_of(h, chunk, work), slopes_of(h, chunk, work), mirror,
                        work);
    }
  }

  Tensor tops_;  // [batch·heads, chunks + 1]
};

}  // namespace

void linear_causal_backward(const LinearProblem& problem, const LinearSaved& saved,
                            const Tensor& grad_out, std::span<Tensor> grads) {
  Sweeps(problem, saved, grad_out, grads).run();
}

}  // namespace attn
