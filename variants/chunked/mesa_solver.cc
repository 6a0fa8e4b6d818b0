// See mesa_solver.h. Beside its output it holds a state and a tile a thread, with gradients a state
// for each chunk.
#include "variants/chunked/mesa_solver.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/row_ops.h"
#include "core/simd/rows.h"
#include "variants/chunked/chunked_attention.h"
#include "variants/chunked/chunked_tile.h"

namespace attn {

namespace {

// A power of two that makes the largest number of a row about 1, so that squares of rows of any
// size neither vanish nor overflow. Multiplying by it is exact.
real scale_of(int64_t dim, const real* row) {
  constexpr int kMost = std::numeric_limits<real>::max_exponent - 2;
  real largest = 0;
  for (int64_t c = 0; c < dim; ++c) largest = std::max(largest, std::abs(row[c]));
  if (!(largest > 0) || !std::isfinite(largest)) return 1;
  return std::ldexp(real(1), -std::clamp(std::ilogb(largest), -kMost, kMost));
}

void scale_rows(int64_t rows, int64_t dim, const real* by, real* x) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t c = 0; c < dim; ++c) x[i * dim + c] *= by[i];
}

}  // namespace

void conjugate_gradients(int64_t rows, int64_t dim, int64_t iterations, const real* q,
                         ApplyRows apply, real* x, real* work) {
  const int64_t count = rows * dim;
  real *const residual = work, *const p = residual + count, *const moved = p + count;
  real *const square = moved + count, *const least = square + rows, *const scales = least + rows;
  std::fill_n(x, count, real(0));
  for (int64_t i = 0; i < rows; ++i) scales[i] = scale_of(dim, q + i * dim);
  std::copy_n(q, count, residual);
  scale_rows(rows, dim, scales, residual);
  std::copy_n(residual, count, p);
  dots_of_rows(rows, dim, p, dim, p, dim, square);
  // Residuals go on falling after rounding has made them meaningless, down to numbers that
  // processors are slow with.
  for (int64_t i = 0; i < rows; ++i)
    least[i] = square[i] * static_cast<real>(kEpsilon * kEpsilon / 16);
  for (int64_t step = 0; step < iterations; ++step) {
    apply(p, moved);
    const Mark mark(Part::elementwise);
    for (int64_t i = 0; i < rows; ++i) {
      if (!(square[i] > least[i])) continue;
      real *const r = residual + i * dim, *const d = p + i * dim, *const to = x + i * dim;
      const real* const by = moved + i * dim;
      const real length = square[i] / row_dot(d, by, dim);
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) to[c] += length * d[c], r[c] -= length * by[c];
      const real next = row_dot(r, r, dim), kept = next / square[i];
      square[i] = next;
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) d[c] = r[c] + kept * d[c];
    }
  }
  for (int64_t i = 0; i < rows; ++i) scales[i] = 1 / scales[i];
  scale_rows(rows, dim, scales, x);
}

namespace {

// The rows of one tile as systems.
class MesaTile : public ChunkedTile {
 public:
  using ChunkedTile::ChunkedTile;
  // to = p·(H_t + diag(λ)) of the tile that is set; `state` is that before it.
  void apply(const real* state, const real* lambda, const real* p, real* to) {
    q_ = q_pair_ = p;
    decay_.scale(p, decay_.read(), work_ + at_.q_read);
    q_read_ = work_ + at_.q_read;
    outputs(state, nullptr, to);
    add_diagonal(rows_, p_.key_dim, lambda, p, to);
  }
  static void add_diagonal(int64_t rows, int64_t dim, const real* lambda, const real* p, real* to) {
    const Mark mark(Part::elementwise);
    for (int64_t i = 0; i < rows; ++i) {
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) to[i * dim + c] += lambda[c] * p[i * dim + c];
    }
  }
};

// The parts of a worker's workspace.
struct SolverParts {
  explicit SolverParts(const ChunkedProblem& p) : tile(p, parts) {
    state = parts.take(p.state_reals());
    gradients = parts.take(cg_reals(p.tile(), p.dim));
  }
  WorkspaceParts parts;
  ChunkedTile::Layout tile;
  int64_t state, gradients;
};

struct Problem {
  ChunkedProblem rows;
  int64_t iterations = 0;
};

// x of one head from `q`; the states before each chunk go to saved.states, or come from there.
void solve_head(const Problem& problem, const ChunkedSaved& s, const real* lambda, const Tensor& q,
                const Tensor& x, bool has_states, int64_t number, real* work) {
  const ChunkedProblem& p = problem.rows;
  const SolverParts parts(p);
  const HeadArrays head(p, s, number);
  MesaTile tile(p, head, parts.tile, work);
  const int64_t d = p.dim, size = p.state_reals(), length = p.length(number);
  const real *const from = q.data() + number * p.len * d, *const of_head =
                                                              lambda + number % p.heads * d;
  real *const to = x.data() + number * p.len * d, *const cg = work + parts.gradients;
  real* state = work + parts.state;
  std::fill_n(state, size, real(0));
  const auto kept = [&](int64_t slot) {
    return s.states.data() + (number * (p.chunks(p.len) + 1) + slot) * size;
  };
  for (int64_t c = 0; c < p.chunks(length); ++c) {
    if (has_states) std::copy_n(kept(c), size, state);
    if (!has_states && s.states.defined()) std::copy_n(state, size, kept(c));
    for (int64_t first = c * p.chunk; first < std::min(length, (c + 1) * p.chunk);
         first += p.tile()) {
      const int64_t rows = std::min({p.tile(), length - first, (c + 1) * p.chunk - first});
      tile.set(first, rows);
      conjugate_gradients(
          rows, d, problem.iterations, from + first * d,
          [&](const real* by, real* out) { tile.apply(state, of_head, by, out); }, to + first * d,
          cg);
      tile.advance(nullptr, state, state);
    }
  }
  if (!has_states && s.states.defined()) std::copy_n(state, size, kept(p.chunks(length)));
  Tally done;
  for (int64_t first = length; first < p.len; first += p.tile()) {
    const int64_t rows = std::min(p.tile(), p.len - first);
    conjugate_gradients(
        rows, d, problem.iterations, from + first * d,
        [&](const real* by, real* out) {
          product(rows, d, d, {by, d}, {state, d}, out, d);
          MesaTile::add_diagonal(rows, d, of_head, by, out);
          done.multiply_adds(rows * size);
        },
        to + first * d, cg);
  }
}

void solve(const Problem& problem, const ChunkedSaved& s, const Tensor& lambda, const Tensor& q,
           const Tensor& x, bool has_states) {
  run_tasks(problem.rows.total_heads(), SolverParts(problem.rows).parts.total(),
            [&](int64_t head, real* work) {
              solve_head(problem, s, lambda.data(), q, x, has_states, head, work);
            });
}

void add_gradients(const Problem& problem, const ChunkedSaved& s, const Tensor& lambda,
                   const Tensor& grad_out, std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  const ChunkedProblem& p = problem.rows;
  const Tensor y(grad_out.shape());
  solve(problem, s, lambda, grad_out, y, true);
  const int64_t rows = p.total_heads() * p.len, d = p.dim;
  const Mark mark(Part::elementwise);
  for (int64_t i = 0; grads[0].defined() && i < y.size(); ++i) grads[0][i] += y[i];
  for (real& value : y.values()) value = -value;
  for (int64_t i = 0; grads[4].defined() && i < rows; ++i) {
    real* const to = grads[4].data() + i / p.len % p.heads * d;
    for (int64_t c = 0; c < d; ++c) to[c] += y[i * d + c] * s.q[i * d + c];  // s.q is x
  }
  std::array<Tensor, kOfRates + 1> of_rows;
  of_rows[kOfK] = grads[1], of_rows[kOfV] = grads[2], of_rows[kOfLogDecay] = grads[3];
  chunked_backward(p, s, y, of_rows);
}

}  // namespace

Var mesa_solve(const MesaInputs& in, int64_t iterations, const std::vector<int64_t>& lengths,
               int64_t chunk) {
  Problem problem{{.batch = in.q.dim(0),
                   .heads = in.q.dim(1),
                   .len = in.q.dim(2),
                   .key_dim = in.q.dim(3),
                   .dim = in.q.dim(3),
                   .chunk = chunk,
                   .decay = Decay::step,
                   .rule = in.rule,
                   .kv_lengths = lengths},
                  iterations};
  const ChunkedProblem& p = problem.rows;
  ChunkedSaved saved{
      .q = in.q.value(), .k = in.k.value(), .v = in.written.value(), .log_decay = in.decay.value()};
  const bool keep = recording({in.q, in.k, in.written, in.decay, in.lambda});
  if (keep) saved.states = Tensor({p.total_heads(), p.chunks(p.len) + 1, p.key_dim, p.dim});
  const Tensor x(in.q.shape()), lambda = in.lambda.value();
  solve(problem, saved, lambda, in.q.value(), x, false);
  count_bytes(sizeof(real) * static_cast<double>(4 * x.size() + in.decay.value().size()));
  if (!keep) return Var(x);
  saved.q = x;
  return custom_op(x, {in.q, in.k, in.written, in.decay, in.lambda},
                   [problem, saved, lambda](const Tensor& grad_out, std::span<Tensor> grads) {
                     add_gradients(problem, saved, lambda, grad_out, grads);
                   });
}

Cost mesa_solve_cost(const AttentionShape& s, int64_t iterations) {
  const int64_t d = s.head_dim;
  const ChunkedProblem p{.batch = s.batch,
                         .heads = s.heads,
                         .len = s.kv_len,
                         .key_dim = d,
                         .dim = d,
                         .chunk = kMesaChunk,
                         .decay = Decay::step,
                         .rule = {.of = LogDecay::Of::softplus}};
  const auto heads = static_cast<double>(p.total_heads());
  const Cost product = chunked_cost(p);
  const double write = 2 * heads * static_cast<double>(p.len * d * d);
  const auto times = static_cast<double>(iterations);
  Cost cost;
  cost.flops = times * (product.flops - write) + write;
  cost.backward_flops = cost.flops + product.backward_flops;
  cost.bytes = sizeof(real) * heads * static_cast<double>(p.len * (4 * d + 1));
  cost.peak_bytes =
      static_cast<double>(workspace_bytes(p.total_heads(), SolverParts(p).parts.total()));
  return cost;
}

}  // namespace attn
