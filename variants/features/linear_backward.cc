// Backward of linear attention without causality: a pass over the queries, then one over the keys;
// both recompute the features chunk by chunk. 8·n·m·d FLOPs, twice as many if the map projects.
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
      real* const grad_state = work + layout_.state;
      clear_state(p_, grad_state);
      add_queries(h, 0, 1, grad_state, work);
      if (needs_keys()) add_keys(h, 0, 1, grad_state, work);
    });
    learned_.add_up(s_);
  }

 private:
  // dq, and the grad_state of these queries.
  void add_queries(const Head& h, int64_t piece, int64_t pieces, real* grad_state,
                   real* work) const {
    const real* const state = s_.states.data() + h.number * p_.state_reals();
    pack_state(state, work);
    for_chunks(p_.row_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows queries = queries_of(h, chunk, work);
      const AugmentedRows grads = output_gradients(h, chunk, work);
      if (needs_keys()) add_to_state(p_, queries, grads, chunk.rows, grad_state);
      if (!needs_queries()) return;
      through_state(grads, chunk.rows, state, work);
      add_query_gradient(h, chunk, queries, work);
    });
  }

  // dk and dv.
  void add_keys(const Head& h, int64_t piece, int64_t pieces, const real* grad_state,
                real* work) const {
    const real running_max = s_.states[(h.number + 1) * p_.state_reals() - 1];
    pack_state(grad_state, work);
    for_chunks(p_.key_chunks(), piece, pieces, [&](int64_t c) {
      const Chunk chunk = chunk_of(p_, h.number, c);
      const FeatureRows keys = keys_of(h, chunk, work);
      const AugmentedRows weighted = scaled_values(h, chunk, running_max, work);
      if (needs_phi_of_keys()) {
        through_state(weighted, chunk.keys, grad_state, work);
        clear_bound_gradient(work);
        add_bound_gradient(weighted.column, chunk.keys, grad_state, work);
        add_key_gradient(h, chunk, keys, work);
      }
      if (grad_v_.defined()) add_value_gradient(h, chunk, keys, weighted.column, grad_state, work);
    });
  }

  void run_pieces(int64_t pieces) const {
    const int64_t heads = p_.total_heads(), size = p_.state_reals();
    const Tensor grad_states({heads, pieces, size});
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      real* const grad_state = grad_states.data() + task * size;
      clear_state(p_, grad_state);
      grad_state[size - 1] = 0;
      add_queries(head_of(task / pieces, work, task % pieces), task % pieces, pieces, grad_state,
                  work);
    });
    if (!needs_keys()) return learned_.add_up(s_);
    for (int64_t head = 0; head < heads; ++head)
      for (int64_t i = 1; i < pieces; ++i)
        merge_states(p_, grad_states.data() + (head * pieces + i) * size,
                     grad_states.data() + head * pieces * size);
    run_tasks(heads * pieces, layout_.parts.total(), [&](int64_t task, real* work) {
      add_keys(head_of(task / pieces, work, task % pieces), task % pieces, pieces,
               grad_states.data() + task / pieces * pieces * size, work);
    });
    learned_.add_up(s_);
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
