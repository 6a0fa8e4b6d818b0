// Forward of linear attention with decay and of the delta rule: one sweep over the tiles of each
// head, which hold the state in the cache; see chunked_tile.h. Memory beside the output: a state
// and a tile a thread; with gradients, a state for each chunk.
#include "variants/chunked/chunked_attention.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "variants/chunked/chunked_tile.h"

namespace attn {
namespace {

Decay decay_of(const Var& log_decay) {
  if (!log_decay.defined()) return Decay::none;
  if (log_decay.shape().rank() == 1) return Decay::head;
  return log_decay.dim(-1) == 1 ? Decay::step : Decay::channel;
}

Shape decay_shape(const ChunkedProblem& p) {
  if (p.decay == Decay::head) return {p.heads};
  return {p.batch, p.heads, p.len, p.decay == Decay::step ? 1 : p.key_dim};
}

void check_shape(const char* name, const Var& x, const Shape& wanted) {
  ATTN_CHECK(!x.defined() || x.shape() == wanted, "chunked attention: {} of {} in place of {}",
             name, x.shape().str(), wanted.str());
}

ChunkedProblem problem_of(const ChunkedInputs& x, const ChunkedOptions& options) {
  ATTN_CHECK(x.q.shape().rank() == 4 && x.v.shape().rank() == 4,
             "chunked attention: q {} and v {} must have four dimensions", x.q.shape().str(),
             x.v.shape().str());
  ChunkedProblem p;
  p.batch = x.q.dim(0), p.heads = x.q.dim(1), p.len = x.q.dim(2), p.key_dim = x.q.dim(3);
  p.dim = x.v.dim(3), p.chunk = options.chunk, p.kv_lengths = options.kv_lengths;
  p.decay = decay_of(x.log_decay), p.delta = x.beta.defined(), p.bonus = x.bonus.defined();
  check_shape("k", x.k, x.q.shape());
  check_shape("v", x.v, x.q.shape().with(3, p.dim));
  check_shape("log_decay", x.log_decay, decay_shape(p));
  check_shape("beta", x.beta, {p.batch, p.heads, p.len, 1});
  check_shape("bonus", x.bonus, {p.heads, p.key_dim});
  ATTN_CHECK(!p.delta || !p.bonus, "chunked attention: beta beside a bonus; give one of them");
  ATTN_CHECK(p.chunk >= 1, "chunked attention: chunk {} must be at least 1", p.chunk);
  ATTN_CHECK(p.kv_lengths.empty() || std::ssize(p.kv_lengths) == p.batch,
             "chunked attention: {} lengths for a batch of {}", p.kv_lengths.size(), p.batch);
  for (const int64_t length : p.kv_lengths)
    ATTN_CHECK(length >= 0 && length <= p.len, "chunked attention: length {} is not in [0, {}]",
               length, p.len);
  return p;
}

// The parts of a worker's workspace.
struct Layout {
  explicit Layout(const ChunkedProblem& p) : tile(p, parts) {
    state = parts.take(p.state_reals());
    erase = parts.take(p.delta ? p.tile() * p.tile() : 0);
    residual = parts.take(p.delta ? p.tile() * p.dim : 0);
    written = parts.take(p.delta ? p.tile() * p.dim : 0);
  }
  WorkspaceParts parts;
  ChunkedTile::Layout tile;
  int64_t state, erase, residual, written;
};

void forward_of_head(const ChunkedProblem& p, const ChunkedSaved& s, const Layout& layout,
                     int64_t number, real* work) {
  const HeadArrays head(p, s, number);
  ChunkedTile tile(p, head, layout.tile, work);
  real *const state = work + layout.state, *const out = s.out.data() + number * p.len * p.dim;
  real* const written = work + layout.written;
  const int64_t size = p.state_reals(), length = p.length(number);
  const auto keep = [&](int64_t slot) {
    if (!s.states.defined()) return;
    std::copy_n(state, size, s.states.data() + (number * (p.chunks(p.len) + 1) + slot) * size);
  };
  std::fill_n(state, size, real(0));
  keep(0);
  for (int64_t c = 0; c < p.chunks(length); ++c) {
    const int64_t end = std::min(length, (c + 1) * p.chunk);
    for (int64_t first = c * p.chunk; first < end; first += p.tile()) {
      tile.set(first, std::min(p.tile(), end - first));
      if (p.delta) {
        tile.erase_weights(work + layout.erase);
        tile.solve(state, work + layout.erase, work + layout.residual, written);
      }
      const real* const rows = p.delta ? written : head.v + first * p.dim;
      tile.outputs(state, rows, out + first * p.dim);
      tile.advance(rows, state);
    }
    keep(c + 1);
  }
  const int64_t padding = p.len - length;
  product(padding, p.dim, p.key_dim, {head.q + length * p.key_dim, p.key_dim}, {state, p.dim},
          out + length * p.dim, p.dim);
  count_flops(2 * static_cast<double>(padding * size));
}

}  // namespace

Var chunked_attention(const ChunkedInputs& x, const ChunkedOptions& options) {
  const ChunkedProblem p = problem_of(x, options);
  const bool keep = recording({x.q, x.k, x.v, x.log_decay, x.beta, x.bonus});
  const auto value = [](const Var& input) { return input.defined() ? input.value() : Tensor(); };
  ChunkedSaved saved{x.q.value(),        x.k.value(),   x.v.value(),
                     value(x.log_decay), value(x.beta), value(x.bonus)};
  saved.out = Tensor(x.v.shape());
  if (keep) saved.states = Tensor({p.total_heads(), p.chunks(p.len) + 1, p.key_dim, p.dim});
  const Layout layout(p);
  run_tasks(p.total_heads(), layout.parts.total(),
            [&](int64_t head, real* work) { forward_of_head(p, saved, layout, head, work); });
  double read = 0;
  for (const Tensor* input : {&saved.q, &saved.k, &saved.v, &saved.log_decay, &saved.beta})
    if (input->defined()) read += static_cast<double>(input->size());
  count_bytes(sizeof(real) * (read + static_cast<double>(saved.out.size())));
  const Tensor out = saved.out;
  if (!keep) return Var(out);
  saved.out = {};  // the backward does not read it
  return custom_op(out, {x.q, x.k, x.v, x.log_decay, x.beta, x.bonus},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     chunked_backward(p, saved, grad_out, grads);
                   });
}

int64_t chunked_workspace(const ChunkedProblem& problem) { return Layout(problem).parts.total(); }

}  // namespace attn
