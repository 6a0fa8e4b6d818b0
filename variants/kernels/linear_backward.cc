// Backward of linear attention: the mirror of the forward, with suffix sums of states over later
// rows and recomputed weights. With G = dO/mass and g = -(dO·o)/mass: dw_ij = G_i·v_j + g_i. About
// 12·n·m·d FLOPs; chunks write only their own rows.
#include "core/counters.h"
#include "core/eigen.h"
#include "core/kernels/exp.h"
#include "variants/kernels/linear_chunks.h"
#include "variants/kernels/workers.h"

namespace attn {
namespace {

class LinearGradient {
 public:
  LinearGradient(const LinearProblem& p, const LinearSaved& saved, const Tensor& grad_out,
                 std::span<Tensor> grads)
      : p_(p),
        s_(saved),
        grad_out_(grad_out),
        grad_q_(grads[0]),
        grad_k_(grads[1]),
        grad_v_(grads[2]) {}

  void run() const {
    const int64_t heads = p_.batch * p_.heads, chunks = p_.chunks();
    const MemoryScope scope(Purpose::workspace);
    const Tensor later({heads, chunks, p_.state_size()});
    run_tasks(heads * chunks, row_reals(), [&](int64_t task, real* work) {
      row_state(task / chunks, task % chunks, later.data() + task * p_.state_size(), work);
    });
    run_tasks(heads, p_.state_size(), [&](int64_t head, real* running) {
      real* const states = later.data() + head * chunks * p_.state_size();
      if (p_.causal)
        suffix_states(states, s_.tops.data() + head * chunks, running);
      else
        for (int64_t c = 1; c < chunks; ++c)
          RowMap(states, p_.state_size()) += RowMap(states + c * p_.state_size(), p_.state_size());
    });
    run_tasks(
        heads * chunks, row_reals() + key_reals() + inside_reals(), [&](int64_t task, real* work) {
          const int64_t head = task / chunks, c = task % chunks;
          add_chunk(head, c, later.data() + (p_.causal ? task : head * chunks) * p_.state_size(),
                    work);
        });
  }

 private:
  int64_t row_reals() const {
    return padded_reals(p_.chunk() * p_.dim) + 3 * padded_reals(p_.chunk());
  }
  int64_t key_reals() const { return padded_reals(p_.chunk() * (p_.dim + 1)); }
  int64_t inside_reals() const { return p_.causal ? 2 * LinearProblem::kStrip * p_.chunk() : 0; }
  int64_t state_index(int64_t head, int64_t c) const {
    return p_.causal ? head * p_.chunks() + c : head;
  }

  struct Rows {
    MatrixMap slope;  // [rows, dim]: G
    real* offset;     // [rows]: g
    real* top;        // [rows]: M_i
    real* share;      // [rows]: exp(M before the chunk - M_i)
  };

  Rows rows_of(int64_t head, int64_t c, const Chunk& chunk, real* work) const {
    real* const numbers = work + padded_reals(p_.chunk() * p_.dim);
    Rows rows{map(work, chunk.rows, p_.dim), numbers, numbers + padded_reals(p_.chunk()),
              numbers + 2 * padded_reals(p_.chunk())};
    const real before = s_.tops[state_index(head, c)];
    RunningTop running(s_.scale_of(head), before, chunk.key);
    for (int64_t r = 0; r < chunk.rows; ++r) {
      const int64_t at = head * p_.q_len + chunk.row + r;
      const real inverse = s_.mass[at] < kNoMass ? real(0) : 1 / s_.mass[at];
      const ConstRowMap grad(grad_out_.data() + at * p_.dim, p_.dim),
          out(s_.out.data() + at * p_.dim, p_.dim);
      rows.slope.row(r) = (grad * inverse).matrix();
      rows.offset[r] = -(grad * out).sum() * inverse;
      rows.top[r] =
          p_.causal
              ? running.through(std::min(chunk.row + r + p_.offset() + 1, chunk.key + chunk.keys))
              : before;
      rows.share[r] = rescale(before, rows.top[r]);
    }
    return rows;
  }

  // What the chunk's rows hand back to the keys before it: Σ share·φ(q)ᵀG and Σ share·φ(q)·g.
  void row_state(int64_t head, int64_t c, real* state, real* work) const {
    const Chunk chunk = chunk_of(p_, head, c);
    Rows rows = rows_of(head, c, chunk, work);
    for (int64_t r = 0; r < chunk.rows; ++r)
      rows.slope.row(r) *= rows.share[r], rows.offset[r] *= rows.share[r];
    const MatrixMap phi =
        map(s_.phi_q.data() + (head * p_.q_len + chunk.row) * p_.features, chunk.rows, p_.features);
    map(state, p_.features, p_.dim).noalias() = phi.transpose() * rows.slope;
    map(state + p_.features * p_.dim, 1, p_.features).noalias() =
        map(rows.offset, 1, chunk.rows) * phi;
    count_flops(2 * static_cast<double>(chunk.rows * p_.state_size()));
  }

  // Replaces each chunk's state by that of all later chunks, relative to the maximum at the chunk's
  // end.
  void suffix_states(real* states, const real* tops, real* running) const {
    std::fill_n(running, p_.state_size(), real(0));
    for (int64_t c = p_.chunks() - 1; c >= 0; --c) {
      const real factor = c + 1 < p_.chunks() ? rescale(tops[c], tops[c + 1]) : real(0);
      real* const state = states + c * p_.state_size();
      for (int64_t i = 0; i < p_.state_size(); ++i) {
        const real later = running[i];
        running[i] = state[i] + factor * later;
        state[i] = later;
      }
    }
  }

  void add_chunk(int64_t head, int64_t c, real* later, real* work) const {
    const Chunk chunk = chunk_of(p_, head, c);
    const Rows rows = rows_of(head, c, chunk, work);
    real* const keys_work = work + row_reals();
    if (p_.causal)
      for (int64_t r = 0; r < chunk.rows; r += LinearProblem::kStrip)
        add_inside(head, chunk, rows, r, std::min(LinearProblem::kStrip, chunk.rows - r),
                   keys_work + key_reals());
    add_keys(head, c, chunk, later, keys_work);
    if (grad_q_.defined()) add_queries(head, c, chunk, rows);
  }

  // dφ(q) through the state before the chunk. Scales the slopes in place, so it comes last.
  void add_queries(int64_t head, int64_t c, const Chunk& chunk, Rows rows) const {
    real* const state = s_.states.data() + state_index(head, c) * p_.state_size();
    for (int64_t r = 0; r < chunk.rows; ++r)
      rows.slope.row(r) *= rows.share[r], rows.offset[r] *= rows.share[r];
    MatrixMap grad =
        map(grad_q_.data() + (head * p_.q_len + chunk.row) * p_.features, chunk.rows, p_.features);
    grad.noalias() += rows.slope * map(state, p_.features, p_.dim).transpose();
    grad.noalias() +=
        map(rows.offset, chunk.rows, 1) * map(state + p_.features * p_.dim, 1, p_.features);
    count_flops(2 * static_cast<double>(chunk.rows * p_.state_size()));
  }

  // dφ(k) and dv through the rows after the chunk.
  void add_keys(int64_t head, int64_t c, const Chunk& chunk, real* later, real* work) const {
    if (chunk.keys == 0) return;
    const int64_t at = head * p_.kv_len + chunk.key;
    const real* const log_scale = s_.scale_of(head);
    const real before = s_.tops[state_index(head, c)];
    const real top = p_.causal
                         ? RunningTop(log_scale, before, chunk.key).through(chunk.key + chunk.keys)
                         : before;
    MatrixMap buffer = map(work, chunk.keys, p_.dim),
              weight = map(work + p_.chunk() * p_.dim, chunk.keys, 1);
    for (int64_t j = 0; j < chunk.keys; ++j)
      weight(j, 0) = log_scale ? fast_exp(log_scale[chunk.key + j] - top) : real(1);
    const MatrixMap sum = map(later, p_.features, p_.dim);
    if (grad_k_.defined()) {
      MatrixMap grad = map(grad_k_.data() + at * p_.features, chunk.keys, p_.features);
      buffer = weight.col(0).asDiagonal() * map(s_.v.data() + at * p_.dim, chunk.keys, p_.dim);
      grad.noalias() += buffer * sum.transpose();
      grad.noalias() += weight * map(later + p_.features * p_.dim, 1, p_.features);
      count_flops(2 * static_cast<double>(chunk.keys * p_.state_size()));
    }
    if (grad_v_.defined()) {
      buffer.noalias() = map(s_.phi_k.data() + at * p_.features, chunk.keys, p_.features) * sum;
      map(grad_v_.data() + at * p_.dim, chunk.keys, p_.dim) += weight.col(0).asDiagonal() * buffer;
      count_flops(2 * static_cast<double>(chunk.keys * p_.features * p_.dim));
    }
  }

  // The pairs inside the chunk, for the rows [first, first + count) of it.
  void add_inside(int64_t head, const Chunk& chunk, const Rows& rows, int64_t first, int64_t count,
                  real* work) const {
    const int64_t row = chunk.row + first, m = p_.features, d = p_.dim;
    const int64_t end = std::min(chunk.key + chunk.keys, row + count + p_.offset());
    const int64_t keys = std::max<int64_t>(0, end - chunk.key);
    const int64_t q_at = head * p_.q_len + row, k_at = head * p_.kv_len + chunk.key;
    const real* const log_scale = s_.scale_of(head);
    const MatrixMap query = map(s_.phi_q.data() + q_at * m, count, m),
                    key = map(s_.phi_k.data() + k_at * m, keys, m);
    const MatrixMap value = map(s_.v.data() + k_at * d, keys, d);
    const auto slope = rows.slope.middleRows(first, count);
    MatrixMap weights = map(work, count, keys),
              slopes = map(work + LinearProblem::kStrip * p_.chunk(), count, keys);
    weights.noalias() = query * key.transpose();
    slopes.noalias() = slope * value.transpose();
    for (int64_t r = 0; r < count; ++r) {
      const int64_t visible = std::clamp<int64_t>(row + r + p_.offset() + 1 - chunk.key, 0, keys);
      real *const weight = weights.data() + r * keys, *const grad = slopes.data() + r * keys;
      const real offset = rows.offset[first + r], top = rows.top[first + r];
      for (int64_t j = 0; j < visible; ++j) {
        const real factor = log_scale ? fast_exp(log_scale[chunk.key + j] - top) : real(1);
        weight[j] *= factor;
        grad[j] = (grad[j] + offset) * factor;
      }
      std::fill(weight + visible, weight + keys, real(0));
      std::fill(grad + visible, grad + keys, real(0));
    }
    if (grad_q_.defined()) map(grad_q_.data() + q_at * m, count, m).noalias() += slopes * key;
    if (grad_k_.defined())
      map(grad_k_.data() + k_at * m, keys, m).noalias() += slopes.transpose() * query;
    if (grad_v_.defined())
      map(grad_v_.data() + k_at * d, keys, d).noalias() += weights.transpose() * slope;
    const int64_t inner = m + d + (grad_q_.defined() ? m : 0) + (grad_k_.defined() ? m : 0) +
                          (grad_v_.defined() ? d : 0);
    count_flops(2 * static_cast<double>(count * keys * inner));
  }

  const LinearProblem& p_;
  const LinearSaved& s_;
  const Tensor &grad_out_, &grad_q_, &grad_k_, &grad_v_;
};

}  // namespace

void linear_backward(const LinearProblem& problem, const LinearSaved& saved, const Tensor& grad_out,
                     std::span<Tensor> grads) {
  LinearGradient(problem, saved, grad_out, grads).run();
}

}  // namespace attn
