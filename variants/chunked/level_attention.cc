// Forward of level_attention(): one sweep over the chunks of each head. Beside the output it holds
// the state of one block for each level, with gradients that of each chunk.
#include "variants/chunked/level_attention.h"

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "variants/chunked/level_tile.h"

namespace attn {
namespace {

// The parts of a worker's workspace.
struct LevelLayout {
  explicit LevelLayout(const LevelProblem& p) : tile(p, parts) {
    const int64_t rows = p.tiles.tile();
    weights = parts.take(rows * rows);
    blocks = parts.take(p.blocks() * p.tiles.state_reals());
  }
  WorkspaceParts parts;
  LevelTile::Layout tile;
  int64_t weights, blocks;
};

LevelProblem level_problem(const LevelInputs& x, int64_t chunk) {
  ATTN_CHECK(x.q.shape().rank() == 4 && x.v.shape().rank() == 4 && x.weights.shape().rank() == 4,
             "level attention: q {}, v {} and weights {} must have four dimensions",
             x.q.shape().str(), x.v.shape().str(), x.weights.shape().str());
  ATTN_CHECK(chunk > 0 && std::has_single_bit(static_cast<uint64_t>(chunk)) &&
                 chunk <= ChunkedProblem::kRowTile,
             "level attention: chunk {} must be a power of two, at most {}", chunk,
             ChunkedProblem::kRowTile);
  LevelProblem p;
  p.tiles.batch = x.q.dim(0), p.tiles.heads = x.q.dim(1), p.tiles.len = x.q.dim(2);
  p.tiles.key_dim = x.q.dim(3), p.tiles.dim = x.v.dim(3);
  p.tiles.chunk = chunk, p.tiles.decay = Decay::step;
  p.levels = x.weights.dim(3);
  const auto check = [](const char* name, const Var& given, const Shape& wanted) {
    ATTN_CHECK(given.shape() == wanted, "level attention: {} of {} in place of {}", name,
               given.shape().str(), wanted.str());
  };
  check("k", x.k, x.q.shape());
  check("v", x.v, x.q.shape().with(3, p.tiles.dim));
  check("log_decay", x.log_decay, x.q.shape().with(3, 1));
  check("weights", x.weights, x.q.shape().with(3, p.levels));
  ATTN_CHECK(levels_of(p.tiles.len) <= p.levels,
             "level attention: {} positions have {} levels, and the weights are of {}", p.tiles.len,
             levels_of(p.tiles.len), p.levels);
  return p;
}

void level_forward(const LevelProblem& p, const LevelSaved& s, const LevelLayout& layout,
                   int64_t number, real* work) {
  const HeadArrays head(p.tiles, s.rows, number);
  const int64_t size = p.tiles.state_reals();
  LevelTile tile(p, head, s.weights.data() + number * p.tiles.len * p.levels, layout.tile, work);
  const auto state_of = [&](int64_t z, int64_t last) {
    if (!s.rows.states.defined()) return work + layout.blocks + z * size;
    return s.rows.states.data() + (number * p.chunks() + last) * size;
  };
  real* const out = s.rows.out.data() + number * p.tiles.len * p.tiles.dim;
  for (int64_t c = 0; c < p.chunks(); ++c) {
    tile.set_chunk(c);
    tile.outputs(state_of, work + layout.weights, out + c * p.tiles.chunk * p.tiles.dim);
    if (c + 1 < p.chunks()) tile.write(state_of, state_of(LevelProblem::block_after(c), c));
  }
}

}  // namespace

Var level_attention(const LevelInputs& x, int64_t chunk) {
  const LevelProblem p = level_problem(x, chunk);
  LevelSaved saved{{.q = x.q.value(),
                    .k = x.k.value(),
                    .v = x.v.value(),
                    .log_decay = x.log_decay.value(),
                    .out = Tensor(x.v.shape())},
                   x.weights.value()};
  const bool keep = recording({x.q, x.k, x.v, x.log_decay, x.weights});
  if (keep)
    saved.rows.states = Tensor({p.tiles.total_heads(), p.chunks(), p.tiles.key_dim, p.tiles.dim});
  const LevelLayout layout(p);
  run_tasks(p.tiles.total_heads(), layout.parts.total(),
            [&](int64_t head, real* work) { level_forward(p, saved, layout, head, work); });
  double moved = static_cast<double>(saved.rows.out.size());
  for (const Var& input : {x.q, x.k, x.v, x.log_decay, x.weights})
    moved += static_cast<double>(input.value().size());
  count_bytes(sizeof(real) * moved);
  const Tensor out = saved.rows.out;
  if (!keep) return Var(out);
  saved.rows.out = {};  // the backward does not read it
  return custom_op(out, {x.q, x.k, x.v, x.log_decay, x.weights},
                   [p, saved](const Tensor& grad_out, std::span<Tensor> grads) {
                     level_backward(p, saved, grad_out, grads);
                   });
}

Cost level_cost(const AttentionShape& s, int64_t levels) {
  LevelProblem p{{.batch = s.batch,
                  .heads = s.heads,
                  .len = s.kv_len,
                  .key_dim = s.head_dim,
                  .dim = s.head_dim,
                  .decay = Decay::step},
                 levels};
  const int64_t d = s.head_dim;
  int64_t forward = 0, backward = 0;  // multiply-adds of a head
  for (int64_t c = 0; c < p.chunks(); ++c) {
    const int64_t rows = p.rows(c), write = c + 1 < p.chunks() ? 1 : 0;
    const int64_t reads = std::popcount(static_cast<uint64_t>(c));
    int64_t pairs = 0, transposed = 0;  // of strips
    for (int64_t first = 0; first < rows; first += ChunkedProblem::kStrip) {
      const int64_t count = std::min(ChunkedProblem::kStrip, rows - first);
      pairs += count * (first + count), transposed += count * (rows - first);
    }
    forward += 2 * pairs * d + (reads + write) * rows * d * d;
    backward += 3 * pairs * d + 2 * transposed * d + 2 * (reads + write) * rows * d * d;
  }
  const auto heads = static_cast<double>(s.batch * s.heads);
  const auto numbers = heads * static_cast<double>(s.kv_len * d);
  const auto size = static_cast<double>(sizeof(real));
  return {.flops = 2 * heads * static_cast<double>(forward),
          .backward_flops = 2 * heads * static_cast<double>(backward),
          .bytes = size * (4 * numbers + heads * static_cast<double>(s.kv_len * (1 + levels))),
          .peak_bytes = size * numbers + static_cast<double>(workspace_bytes(
                                             s.batch * s.heads, LevelLayout(p).parts.total())),
          .state_bytes =
              static_cast<double>(level_state_bytes(s.batch * s.heads, levels_of(s.kv_len), d, d))};
}

}  // namespace attn
