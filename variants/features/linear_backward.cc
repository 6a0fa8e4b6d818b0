// Backward of linear attention that is not causal: a pass over the queries, then one over the keys,
// features made again chunk by chunk. 8·n·m·d FLOPs, and as many where a map projects.
#include "variants/features/linear_gradient.h"

namespace attn {
namespace {

class TwoPasses final : public LinearGradient {
 public:
  using LinearGradient::LinearGradient;

  void run() const {
    const int64_t pieces = p_.pieces();
    if (pieces > 1) return run_pieces(pieces);
    run_tasks(p_.total_heads(), layout_.parts.total(), [&](int64_t head, real* work) {
      const Head h = head_of(head, work);
      real* const mirror = work + layout_.state;
      clear_state(p_, mirror);
      add_queries(h, 0, 1, mirror, work);
      if (needs_keys()) add_keys(h, 0, 1, mirror, work);
    });
  }

 private:
  // Not causal: dq, and the mirror of these queries.
  void add_queries(const Head& h, int64_t piece, int64_t pieces, real* mirror, real* work) const {
    const real* const state = s_.states.data() + h.number * p_.state_reals();
    pack_state(state, work);
    for_chunks(p_.row_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows queries = queries_of(h, chunk, work);
      const Slopes slopes = slopes_of(h, chunk, work);
      if (needs_keys()) add_to_state(p_, queries, slopes.matrix, slopes.column, chunk.rows, mirror);
      if (!grad_q_.defined()) return;
      through_state(slopes, chunk.rows, state, work);
      add_gradient(h, s_.q, grad_q_, h.number * p_.q_len + chunk.row, queries, chunk.rows, work);
    });
  }

  // Not causal: dk and dv.
  void add_keys(const Head& h, int64_t piece, int64_t pieces, const real* mirror,
                real* work) const {
    const real top = s_.states[(h.number + 1) * p_.state_reals() - 1];
    pack_state(mirror, work);
    for_chunks(p_.key_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows keys = keys_of(h, chunk, work);
      const Slopes brought = keyed(h, chunk, top, work);
      if (grad_k_.defined()) {
        through_state(brought, chunk.keys, mirror, work);
        add_gradient(h, s_.k, grad_k_, h.number * p_.kv_len + chunk.key, keys, chunk.keys, work);
      }
      if (grad_v_.defined()) add_value_gradient(h, chunk, keys, brought.column, mirror, work);
    });
  }

  void run_pieces(int64_t pieces) const {
    const int64_t heads = p_.total_heads(), size = p_.state_reals();
    const Tensor mirrors({heads, pieces, size});
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      real* const mirror = mirrors.data() + task * size;
      clear_state(p_, mirror);
      mirror[size - 1] = 0;
      add_queries(head_of(task / pieces, work), task % pieces, pieces, mirror, work);
    });
    if (!needs_keys()) return;
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 1; i < pieces; ++i)
        merge_states(p_, mirrors.data() + (head * pieces + i) * size,
                     mirrors.data() + head * pieces * size);
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      add_keys(head_of(task / pieces, work), task % pieces, pieces,
               mirrors.data() + task / pieces * pieces * size, work);
    });
  }
};

}  // namespace

void linear_backward(const LinearProblem& problem, const LinearSaved& saved, const Tensor& grad_out,
                     std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  if (problem.causal) return linear_causal_backward(problem, saved, grad_out, grads);
  TwoPasses(problem, saved, grad_out, grads).run();
}

}  // namespace attn
