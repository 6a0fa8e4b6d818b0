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

// A removal has no decay of steps: with one channel, it is of channels.
Decay decay_of(const Var& log_decay, bool removal) {
  if (!log_decay.defined()) return Decay::none;
  if (log_decay.shape().rank() == 1) return Decay::head;
  return log_decay.dim(-1) == 1 && !removal ? Decay::step : Decay::channel;
}

Shape decay_shape(const ChunkedProblem& p) {
  if (p.decay == Decay::head) return {p.heads};
  return {p.batch, p.heads, p.len, p.decay == Decay::step ? 1 : p.key_dim};
}

void check_shape(const char* name, const Var& x, const Shape& wanted) {
  ATTN_CHECK(!x.defined() || x.shape() == wanted, "chunked attention: {} of {} in place of {}",
             name, x.shape().str(), wanted.str());
}

ChunkedProblem chunked_problem(const ChunkedInputs& x, const ChunkedOptions& options) {
  ATTN_CHECK(x.q.shape().rank() == 4 && x.v.shape().rank() == 4,
             "chunked attention: q {} and v {} must have four dimensions", x.q.shape().str(),
             x.v.shape().str());
  ChunkedProblem p;
  p.batch = x.q.dim(0), p.heads = x.q.dim(1), p.len = x.q.dim(2), p.key_dim = x.q.dim(3);
  p.dim = x.v.dim(3), p.chunk = options.chunk, p.kv_lengths = options.kv_lengths;
  p.delta = x.beta.defined(), p.bonus = x.bonus.defined(), p.removal = x.erase.defined();
  p.decay = decay_of(x.log_decay, p.removal), p.scale = options.scale;
  p.rule = x.rule;
  check_shape("k", x.k, x.q.shape());
  check_shape("v", x.v, x.q.shape().with(3, p.dim));
  check_shape("log_decay", x.log_decay, decay_shape(p));
  check_shape("rates", x.rule.rates, {p.heads});
  check_shape("beta", x.beta, {p.batch, p.heads, p.len, 1});
  check_shape("bonus", x.bonus, {p.heads, p.key_dim});
  check_shape("erase", x.erase, x.q.shape());
  check_shape("remove", x.remove, x.q.shape());
  ATTN_CHECK(x.erase.defined() == x.remove.defined(),
             "chunked attention: erase without remove, or remove without erase; give both");
  ATTN_CHECK(!p.removal || p.decay != Decay::head,
             "chunked attention: a decay of each head beside a removal; give one of each channel");
  ATTN_CHECK(p.delta + p.bonus + p.removal <= 1,
             "chunked attention: beta, a bonus and a removal exclude each other; give one of them");
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
    erase = parts.take(p.solves() ? p.tile() * p.tile() : 0);
    residual = parts.take(p.solves() ? p.tile() * p.dim : 0);
    solved = p.delta ? parts.take(p.tile() * p.dim) : residual;
  }
  WorkspaceParts parts;
  ChunkedTile::Layout tile;
  int64_t state, erase, residual, solved;
};

void chunked_forward(const ChunkedProblem& p, const ChunkedSaved& s, const Layout& layout,
                     int64_t number, real* work) {
  const HeadArrays head(p, s, number);
  ChunkedTile tile(p, head, layout.tile, work);
  real* const out = s.out.data() + number * p.len * p.dim;
  real* const solved = work + layout.solved;
  const int64_t size = p.state_reals(), length = p.length(number);
  // Of the first tile of a chunk, the state before lies where it is kept, if it is.
  real* const own = work + layout.state;
  const auto kept = [&](int64_t slot) {
    if (!s.states.defined()) return own;
    return s.states.data() + (number * (p.chunks(p.len) + 1) + slot) * size;
  };
  real* state = kept(0);
  std::fill_n(state, size, real(0));
  for (int64_t c = 0; c < p.chunks(length); ++c) {
    const int64_t end = std::min(length, (c + 1) * p.chunk);
    for (int64_t first = c * p.chunk; first < end; first += p.tile()) {
      tile.set(first, std::min(p.tile(), end - first));
      const int64_t next = first + p.tile();
      const int64_t rows_ahead = std::clamp<int64_t>(length - next, 0, p.tile());
      tile.prefetch_queries(next, rows_ahead);
      if (p.solves()) {
        tile.erase_weights(work + layout.erase);
        tile.solve(state, work + layout.erase, work + layout.residual, solved);
      }
      tile.outputs(state, solved, out + first * p.dim);
      tile.prefetch_keys(next, rows_ahead);
      real* const after = next < end ? own : kept(c + 1);
      tile.advance(solved, state, after);
      state = after;
    }
  }
  const int64_t padding = p.len - length;
  product(padding, p.dim, p.key_dim, {head.q + length * p.key_dim, p.key_dim}, {state, p.dim},
          out + length * p.dim, p.dim);
  multiply_all(padding * p.dim, p.scale, out + length * p.dim);
  count_flops(2 * static_cast<double>(padding * size));
}

}  // namespace

Var chunked_attention(const ChunkedInputs& x, const ChunkedOptions& options) {
  const ChunkedProblem p = chunked_problem(x, options);
  const bool keep =
      recording({x.q, x.k, x.v, x.log_decay, x.beta, x.bonus, x.erase, x.remove, x.rule.rates});
  const auto value = [](const Var& input) { return input.defined() ? input.value() : Tensor(); };
  ChunkedSaved saved{x.q.value(),   x.k.value(),    x.v.value(),    value(x.log_decay),
                     value(x.beta), value(x.bonus), value(x.erase), value(x.remove)};
  saved.out = Tensor(x.v.shape());
  if (keep) saved.states = Tensor({p.total_heads(), p.chunks(p.len) + 1, p.key_dim, p.dim});
  const Layout layout(p);
  run_tasks(p.total_heads(), layout.parts.total(),
            [&](int64_t head, real* work) { chunked_forward(p, saved, layout, head, work); });
  double read = 0;
  for (const Tensor* input :
       {&saved.q, &saved.k, &saved.v, &saved.log_decay, &saved.beta, &saved.erase, &saved.remove})
    if (input->defined()) read += static_cast<double>(input->size());
  count_bytes(sizeof(real) * (read + static_cast<double>(saved.out.size())));
  const Tensor out = saved.out;
  if (!keep) return Var(out);
  saved.out = {};  // the backward does not read it
  return custom_op(out,
                   {x.q, x.k, x.v, x.log_decay, x.beta, x.bonus, x.erase, x.remove, x.rule.rates},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     chunked_backward(p, saved, grad_out, grads);
                   });
}

int64_t chunked_workspace(const ChunkedProblem& problem) { return Layout(problem).parts.total(); }

}  // namespace attn
