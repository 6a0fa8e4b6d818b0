// The cost of chunked_attention(), by counting tiles and strips; O(n / tile). Tiles whose decay is
// too large for the factored form (tile_decay.h) count as the others and take more exponentials.
#include "core/base/workers.h"
#include "variants/chunked/chunked_attention.h"

namespace attn {
namespace {

// Multiply-adds of one head.
struct Work {
  double forward = 0, backward = 0;
};

// last: of its chunk.
void add_tile(const ChunkedProblem& p, int64_t rows, bool last, Work& work) {
  int64_t pairs = 0;  // up to the end of each strip; as many from its beginning
  int64_t transposed = 0;
  for (int64_t first = 0; first < rows; first += ChunkedProblem::kStrip) {
    const int64_t count = std::min(ChunkedProblem::kStrip, rows - first);
    pairs += count * (first + count), transposed += count * (rows - first);
  }
  const auto of = [](int64_t count) { return static_cast<double>(count); };
  const int64_t m = p.key_dim, d = p.dim;
  const double state = of(rows * m * d), substitution = of(rows * (rows - 1) / 2 * d);
  const double diagonal = p.bonus ? of(rows * m) : 0, writes = of(p.writes());
  double solve = p.solves() ? writes * of(pairs * m) + state + substitution : 0;
  if (p.removal) solve += of(pairs * d);
  work.forward += (1 + writes) * state + writes * of(pairs * (m + d)) + diagonal + solve;
  work.backward += solve + (last ? 0 : writes * state) + (2 + 2 * writes) * state + diagonal;
  work.backward += writes * of(2 * pairs * m + pairs * d + transposed * (m + d));
  if (p.bonus) work.backward += of(rows * (d + 3 * m));
  if (p.solves())
    work.backward += 2 * state + substitution + writes * of(pairs * (m + d) + transposed * m);
  if (p.removal) work.backward += of(pairs * m + transposed * d);
}

}  // namespace

Cost chunked_cost(const ChunkedProblem& p) {
  Work work;
  for (int64_t chunk = 0; chunk < p.len; chunk += p.chunk) {
    const int64_t end = std::min(p.len, chunk + p.chunk);
    for (int64_t first = chunk; first < end; first += p.tile())
      add_tile(p, std::min(p.tile(), end - first), first + p.tile() >= end, work);
  }
  const double heads = static_cast<double>(p.total_heads()), rows = static_cast<double>(p.len);
  const double size = sizeof(real), m = static_cast<double>(p.key_dim),
               d = static_cast<double>(p.dim);
  const double gates = (p.decay == Decay::head ? 0 : static_cast<double>(p.decays())) +
                       (p.delta ? 1 : 0) + (p.removal ? 2 * m : 0);
  Cost cost;
  cost.flops = 2 * heads * work.forward;
  cost.backward_flops = 2 * heads * work.backward;
  cost.bytes = size * heads * rows * (2 * m + 2 * d + gates);
  cost.peak_bytes = size * heads * rows * d +
                    static_cast<double>(workspace_bytes(p.total_heads(), chunked_workspace(p)));
  cost.state_bytes = size * heads * m * d;
  return cost;
}

// Decays of steps and of channels come from gates, by a rule whose values take room for a tile;
// those of heads are given.
Cost chunked_cost(const AttentionShape& s, Decay decay, WriteRule rule) {
  const bool has_gates = decay == Decay::step || decay == Decay::channel;
  return chunked_cost(
      ChunkedProblem{.batch = s.batch,
                     .heads = s.heads,
                     .len = s.kv_len,
                     .key_dim = s.head_dim,
                     .dim = s.head_dim,
                     .decay = decay,
                     .rule = {.of = has_gates ? LogDecay::Of::softplus : LogDecay::Of::given},
                     .delta = rule == WriteRule::delta,
                     .removal = rule == WriteRule::removal,
                     .bonus = rule == WriteRule::bonus});
}

}  // namespace attn
