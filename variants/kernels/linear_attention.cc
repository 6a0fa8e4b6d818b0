// Forward of linear attention in three sweeps: a state a chunk, prefix sums of states, then the
// rows of each chunk. About 4·n·m·d FLOPs (m features), causal 160·n·(m+d) more inside chunks;
// every sweep is parallel over heads × chunks but the prefix.
#include "variants/kernels/linear_attention.h"

#include "core/check.h"
#include "core/counters.h"
#include "core/eigen.h"
#include "core/kernels/exp.h"
#include "variants/kernels/linear_chunks.h"
#include "variants/kernels/workers.h"

namespace attn {
namespace {

LinearProblem problem_of(const Var& phi_q, const Var& phi_k, const Var& v,
                         const LinearOptions& options) {
  LinearProblem p;
  p.batch = phi_q.dim(0), p.heads = phi_q.dim(1), p.q_len = phi_q.dim(2), p.features = phi_q.dim(3);
  p.kv_len = phi_k.dim(2), p.dim = v.dim(3);
  p.causal = options.causal, p.kv_lengths = options.kv_lengths;
  ATTN_CHECK(
      phi_k.shape() == phi_q.shape().with(2, p.kv_len) && v.shape() == phi_k.shape().with(3, p.dim),
      "linear attention: phi_q {}, phi_k {} and v {} do not fit", phi_q.shape().str(),
      phi_k.shape().str(), v.shape().str());
  return p;
}

// Workspace a worker: of a chunk's weighted values, of a running state, of the weights of a strip.
int64_t chunk_reals(const LinearProblem& p) { return p.chunk() * (p.dim + 1); }
int64_t running_reals(const LinearProblem& p) { return p.causal ? p.state_size() : 0; }
int64_t strip_reals(const LinearProblem& p) {
  return p.causal ? LinearProblem::kStrip * p.chunk() : 0;
}

// The state of one chunk's keys alone, relative to their own maximum, which is returned.
real chunk_state(const LinearProblem& p, const LinearSaved& s, int64_t head, const Chunk& chunk,
                 real* state, real* work) {
  const real* const log_scale = s.scale_of(head);
  const MatrixMap phi =
      map(s.phi_k.data() + (head * p.kv_len + chunk.key) * p.features, chunk.keys, p.features);
  const MatrixMap value =
      map(s.v.data() + (head * p.kv_len + chunk.key) * p.dim, chunk.keys, p.dim);
  MatrixMap sum = map(state, p.features, p.dim),
            mass = map(state + p.features * p.dim, 1, p.features);
  const real top = RunningTop(log_scale, -kInfinity, chunk.key).through(chunk.key + chunk.keys);
  if (chunk.keys == 0) {
    std::fill_n(state, p.state_size(), real(0));
  } else if (!log_scale) {
    sum.noalias() = phi.transpose() * value;
    mass = phi.colwise().sum();
  } else {
    MatrixMap weighted = map(work, chunk.keys, p.dim),
              weight = map(work + p.chunk() * p.dim, 1, chunk.keys);
    for (int64_t j = 0; j < chunk.keys; ++j) {
      weight(0, j) = fast_exp(log_scale[chunk.key + j] - top);
      weighted.row(j) = weight(0, j) * value.row(j);
    }
    sum.noalias() = phi.transpose() * weighted;
    mass.noalias() = weight * phi;
  }
  count_flops(2 * static_cast<double>(chunk.keys * p.state_size()));
  return top;
}

// Replaces each chunk's state by that of all keys before the chunk.
void prefix_states(const LinearProblem& p, real* states, real* tops, real* running) {
  std::fill_n(running, p.state_size(), real(0));
  real top = -kInfinity;
  for (int64_t c = 0; c < p.chunks(); ++c) {
    real* const state = states + c * p.state_size();
    const real own = tops[c], next = own > top ? own : top;
    const real old_factor = rescale(top, next), own_factor = rescale(own, next);
    for (int64_t i = 0; i < p.state_size(); ++i) {
      const real before = running[i];
      running[i] = before * old_factor + state[i] * own_factor;
      state[i] = before;
    }
    tops[c] = top;
    top = next;
  }
}

// The state of all keys of a head, into total, which starts as zeros; returns its maximum.
real sum_states(const LinearProblem& p, const real* states, const real* tops, real* total) {
  real top = -kInfinity;
  for (int64_t c = 0; c < p.chunks(); ++c) top = tops[c] > top ? tops[c] : top;
  for (int64_t c = 0; c < p.chunks(); ++c) {
    const real factor = rescale(tops[c], top);
    for (int64_t i = 0; i < p.state_size(); ++i)
      total[i] += factor * states[c * p.state_size() + i];
  }
  return top;
}

// Fills saved.states and saved.tops.
void make_states(const LinearProblem& p, LinearSaved& saved) {
  const int64_t heads = p.batch * p.heads, chunks = p.chunks();
  Tensor states({heads, chunks, p.state_size()}), tops({heads, chunks});
  run_tasks(heads * chunks, chunk_reals(p), [&](int64_t task, real* work) {
    const int64_t head = task / chunks;
    tops[task] = chunk_state(p, saved, head, chunk_of(p, head, task % chunks),
                             states.data() + task * p.state_size(), work);
  });
  saved.states = p.causal ? states : Tensor::zeros({heads, 1, p.state_size()});
  saved.tops = p.causal ? tops : Tensor({heads, 1});
  run_tasks(heads, running_reals(p), [&](int64_t head, real* running) {
    real* const head_states = states.data() + head * chunks * p.state_size();
    real* const head_tops = tops.data() + head * chunks;
    if (p.causal)
      prefix_states(p, head_states, head_tops, running);
    else
      saved.tops[head] =
          sum_states(p, head_states, head_tops, saved.states.data() + head * p.state_size());
  });
}

// Adds what the rows [row, row + rows) see inside their own chunk; they hold what they see before
// it, relative to `before`.
void add_inside(const LinearProblem& p, const LinearSaved& s, int64_t head, const Chunk& chunk,
                int64_t row, int64_t rows, real before, RunningTop& running, real* mass,
                real* work) {
  const int64_t end = std::min(chunk.key + chunk.keys, row + rows + p.offset()),
                keys = std::max<int64_t>(0, end - chunk.key);
  const real* const log_scale = s.scale_of(head);
  const int64_t q_at = head * p.q_len + row, k_at = head * p.kv_len + chunk.key;
  MatrixMap weights = map(work, rows, keys), out = map(s.out.data() + q_at * p.dim, rows, p.dim);
  weights.noalias() = map(s.phi_q.data() + q_at * p.features, rows, p.features) *
                      map(s.phi_k.data() + k_at * p.features, keys, p.features).transpose();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t visible = std::clamp<int64_t>(row + r + p.offset() + 1 - chunk.key, 0, keys);
    real* const weight = work + r * keys;
    const real top = running.through(chunk.key + visible), old = rescale(before, top);
    if (log_scale)
      for (int64_t j = 0; j < visible; ++j) weight[j] *= fast_exp(log_scale[chunk.key + j] - top);
    std::fill(weight + visible, weight + keys, real(0));
    mass[r] = mass[r] * old + RowMap(weight, visible).sum();
    if (old != 1) out.row(r) *= old;
  }
  out.noalias() += weights * map(s.v.data() + k_at * p.dim, keys, p.dim);
  count_flops(2 * static_cast<double>(rows * keys * (p.features + p.dim)));
}

void chunk_rows(const LinearProblem& p, const LinearSaved& s, int64_t head, int64_t index,
                real* work) {
  const Chunk chunk = chunk_of(p, head, index);
  const int64_t which = p.causal ? head * p.chunks() + index : head,
                at = head * p.q_len + chunk.row;
  if (chunk.rows == 0) return;
  const real* const state = s.states.data() + which * p.state_size();
  const MatrixMap phi = map(s.phi_q.data() + at * p.features, chunk.rows, p.features);
  MatrixMap out = map(s.out.data() + at * p.dim, chunk.rows, p.dim),
            mass = map(s.mass.data() + at, chunk.rows, 1);
  out.noalias() = phi * map(const_cast<real*>(state), p.features, p.dim);
  mass.noalias() = phi * map(const_cast<real*>(state) + p.features * p.dim, p.features, 1);
  count_flops(2 * static_cast<double>(chunk.rows * p.state_size()));
  if (p.causal) {
    RunningTop running(s.scale_of(head), s.tops[which], chunk.key);
    for (int64_t r = 0; r < chunk.rows; r += LinearProblem::kStrip)
      add_inside(p, s, head, chunk, chunk.row + r, std::min(LinearProblem::kStrip, chunk.rows - r),
                 s.tops[which], running, s.mass.data() + at + r, work);
  }
  for (int64_t r = 0; r < chunk.rows; ++r) {
    if (mass(r, 0) < kNoMass)  // and not a NaN
      out.row(r).setZero();
    else
      out.row(r) /= mass(r, 0);
  }
}

}  // namespace

Var linear_attention(const Var& phi_q, const Var& phi_k, const Var& v,
                     const LinearOptions& options) {
  const LinearProblem p = problem_of(phi_q, phi_k, v, options);
  LinearSaved saved;
  saved.phi_q = phi_q.value(), saved.phi_k = phi_k.value(), saved.v = v.value(),
  saved.log_scale = options.log_scale;
  saved.out = Tensor(saved.phi_q.shape().with(3, p.dim));
  saved.mass = Tensor({p.batch * p.heads, p.q_len});
  make_states(p, saved);
  if (p.causal && p.offset() < 0) {  // the first queries see nothing and belong to no chunk
    saved.out.fill(0);
    saved.mass.fill(0);
  }
  const int64_t chunks = p.chunks();
  run_tasks(p.batch * p.heads * chunks, strip_reals(p), [&](int64_t task, real* work) {
    chunk_rows(p, saved, task / chunks, task % chunks, work);
  });
  count_bytes(static_cast<double>(sizeof(real)) *
              static_cast<double>(saved.phi_q.size() + saved.phi_k.size() + saved.v.size() +
                                  saved.out.size()));
  if (!recording({phi_q, phi_k, v})) return Var(saved.out);
  return custom_op(saved.out, {phi_q, phi_k, v},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     linear_backward(p, saved, grad_out, grads);
                   });
}

Cost linear_cost(const AttentionShape& shape, int64_t features) {
  LinearProblem p;
  p.batch = shape.batch, p.heads = shape.heads, p.q_len = shape.q_len, p.kv_len = shape.kv_len;
  p.features = features, p.dim = shape.head_dim, p.causal = shape.causal;
  const int64_t heads = p.batch * p.heads, chunks = p.chunks();
  const double size = sizeof(real), state = static_cast<double>(p.state_size());
  double pairs = 0, rows = 0;  // of one head
  for (int64_t c = 0; c < chunks; ++c) {
    const Chunk chunk = chunk_of(p, 0, c);
    rows += static_cast<double>(chunk.rows);
    for (int64_t r = 0; p.causal && r < chunk.rows; r += LinearProblem::kStrip) {
      const int64_t count = std::min(LinearProblem::kStrip, chunk.rows - r);
      const int64_t seen = chunk.row + r + count + p.offset() - chunk.key;
      pairs += static_cast<double>(count * std::min(chunk.keys, seen));
    }
  }
  Cost cost;
  cost.flops = 2 * static_cast<double>(heads) *
               ((rows + static_cast<double>(p.kv_len)) * state +
                pairs * static_cast<double>(features + p.dim));
  cost.backward_flops =
      2 * static_cast<double>(heads) *
      (2 * rows * state +
       static_cast<double>(p.kv_len) * (state + static_cast<double>(features * p.dim)) +
       pairs * static_cast<double>(3 * features + 2 * p.dim));
  cost.bytes = size * static_cast<double>(heads * (p.q_len + p.kv_len) * (features + p.dim));
  const double kept =
      size * static_cast<double>(heads) *
      (static_cast<double>(p.q_len * (p.dim + 1)) + static_cast<double>(chunks) * (state + 1));
  const double total = p.causal ? 0 : size * static_cast<double>(heads) * (state + 1);
  const int64_t first = workspace_bytes(heads * chunks, chunk_reals(p));
  const int64_t prefix = workspace_bytes(heads, running_reals(p));
  const int64_t last = workspace_bytes(heads * chunks, strip_reals(p));
  const double freed = p.causal ? 0 : size * static_cast<double>(heads * chunks) * (state + 1);
  cost.peak_bytes =
      std::max({kept + static_cast<double>(first), kept + total + static_cast<double>(prefix),
                kept - freed + total + static_cast<double>(last)});
  cost.state_bytes = size * static_cast<double>(heads) * state;
  return cost;
}

}  // namespace attn
