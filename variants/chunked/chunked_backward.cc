// Backward of chunked_attention(): for each head, from the last chunk to the first. States inside a
// chunk, and what the delta rule wrote, are computed again from the state stored before the chunk.
// Memory beside the gradients: what one chunk needs a thread.
#include <algorithm>
#include <memory>
#include <new>

#include "core/base/workers.h"
#include "variants/chunked/tile_gradient.h"

namespace attn {
namespace {

// The tiles themselves lie in the workspace too. As pieces of memory of their own, they would be as
// many as the threads that run at the same time hold, and a steady step would ask for more by
// chance.
constexpr int64_t kRealsOfTile = sizeof(TileGradient) / sizeof(real);
static_assert(sizeof(TileGradient) % sizeof(real) == 0 && alignof(TileGradient) <= 64);

// The parts of a worker's workspace.
struct BackwardLayout {
  explicit BackwardLayout(const ChunkedProblem& p) : tile(p, tile_parts), gradient(p, parts) {
    tiles = parts.take(p.tiles_of_chunk() * tile_parts.total());
    objects = parts.take(p.tiles_of_chunk() * kRealsOfTile);
    const int64_t rows = p.solves() ? p.tiles_of_chunk() * p.tile() : 0;
    states = parts.take((p.tiles_of_chunk() - 1) * p.state_reals());
    grad_state = parts.take(p.state_reals());
    erase = parts.take(rows * p.tile());
    residual = parts.take(rows * p.dim);
    solved = p.delta ? parts.take(rows * p.dim) : residual;
  }
  WorkspaceParts tile_parts, parts;
  ChunkedTile::Layout tile;
  TileGradient::Layout gradient;
  int64_t tiles, objects, states, grad_state, erase, residual, solved;
};

class HeadBackward {
 public:
  HeadBackward(const ChunkedProblem& p, const ChunkedSaved& s, const BackwardLayout& layout,
               int64_t number, const HeadGradients& to, real* work)
      : p_(p),
        at_(layout),
        head_(p, s, number),
        work_(work),
        length_(p.length(number)),
        states_(s.states.data() + number * (p.chunks(p.len) + 1) * p.state_reals()),
        tiles_(reinterpret_cast<TileGradient*>(work + layout.objects)) {
    for (int64_t t = 0; t < p.tiles_of_chunk(); ++t)
      new (tiles_ + t)
          TileGradient(p, head_, layout.tile, work + layout.tiles + t * layout.tile_parts.total(),
                       layout.gradient, work, to);
  }

  ~HeadBackward() { std::destroy_n(tiles_, p_.tiles_of_chunk()); }  // which count their FLOPs then
  HeadBackward(const HeadBackward&) = delete;
  HeadBackward& operator=(const HeadBackward&) = delete;

  // grad_out: of the head.
  void run(const real* grad_out) {
    real* const grad_state = work_ + at_.grad_state;
    std::fill_n(grad_state, p_.state_reals(), real(0));
    const int64_t chunks = p_.chunks(length_);
    if (length_ < p_.len)
      tiles_[0].add_padding(length_, states_ + chunks * p_.state_reals(), grad_out, grad_state);
    for (int64_t c = chunks - 1; c >= 0; --c) {
      const int64_t tiles = forward_again(c);
      for (int64_t t = tiles - 1; t >= 0; --t) {
        TileGradient& tile = set(c, t);
        if (c > 0) tile.prefetch_before(p_.chunk, grad_out);
        tile.add({state(c, t), erase(t), residual(t), solved(t)}, grad_out, grad_state);
      }
    }
  }

 private:
  // Each tile of a chunk keeps its own decays and scaled rows between the two passes over them.
  TileGradient& set(int64_t c, int64_t t) {
    const int64_t first = c * p_.chunk + t * p_.tile();
    TileGradient& tile = tiles_[t];
    tile.set(first, std::min({p_.tile(), length_ - first, (c + 1) * p_.chunk - first}));
    return tile;
  }
  // The states before the tiles of a chunk, and what they write. Returns the number of tiles.
  int64_t forward_again(int64_t c) {
    const int64_t rows = std::min(length_ - c * p_.chunk, p_.chunk);
    const int64_t tiles = (rows + p_.tile() - 1) / p_.tile();
    for (int64_t t = 0; t < tiles; ++t) {
      if (!p_.solves() && t + 1 == tiles) break;  // nothing else is needed of the last tile
      TileGradient& tile = set(c, t);
      if (p_.solves()) {
        tile.erase_weights(erase(t));
        tile.solve(state(c, t), erase(t), residual(t), solved(t));
      }
      if (t + 1 == tiles) break;
      tile.advance(solved(t), state(c, t), work_ + at_.states + t * p_.state_reals());
    }
    return tiles;
  }

  const real* state(int64_t c, int64_t t) const {
    if (t == 0) return states_ + c * p_.state_reals();
    return work_ + at_.states + (t - 1) * p_.state_reals();
  }
  real* erase(int64_t t) const { return work_ + at_.erase + t * p_.tile() * p_.tile(); }
  real* residual(int64_t t) const { return work_ + at_.residual + t * p_.tile() * p_.dim; }
  real* solved(int64_t t) const { return work_ + at_.solved + t * p_.tile() * p_.dim; }

  const ChunkedProblem& p_;
  const BackwardLayout& at_;
  const HeadArrays head_;
  real* const work_;
  const int64_t length_;
  const real* const states_;
  TileGradient* const tiles_;  // of a chunk
};

// Gradients of what the heads of several sequences share: a row of `width` numbers for each head
// and sequence, summed in order.
class SharedGradient {
 public:
  SharedGradient(const Tensor& total, const ChunkedProblem& p, int64_t width)
      : total_(total), width_(width) {
    if (total.defined()) rows_ = Tensor::zeros({p.total_heads(), width});
  }
  real* of(int64_t head) const { return rows_.defined() ? rows_.data() + head * width_ : nullptr; }
  void finish() const {
    if (!rows_.defined()) return;
    for (int64_t i = 0; i < rows_.size(); ++i) total_[i % total_.size()] += rows_[i];
  }

 private:
  Tensor total_, rows_;
  int64_t width_;
};

}  // namespace

void chunked_backward(const ChunkedProblem& p, const ChunkedSaved& saved, const Tensor& grad_out,
                      std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  const BackwardLayout layout(p);
  const SharedGradient bonus(grads[kOfBonus], p, p.key_dim),
      log_decay(p.decay == Decay::head ? grads[kOfLogDecay] : Tensor(), p, 1),
      rates(grads[kOfRates], p, 1);
  run_tasks(p.total_heads(), layout.parts.total(), [&](int64_t head, real* work) {
    const auto rows = [&](ChunkedInput input, int64_t width) {
      const Tensor& grad = grads[input];
      return grad.defined() ? grad.data() + head * p.len * width : nullptr;
    };
    const HeadGradients to = {
        .q = rows(kOfQ, p.key_dim),
        .k = rows(kOfK, p.key_dim),
        .v = rows(kOfV, p.dim),
        .log_decay = p.decay == Decay::head ? log_decay.of(head) : rows(kOfLogDecay, p.decays()),
        .beta = rows(kOfBeta, 1),
        .bonus = bonus.of(head),
        .erase = rows(kOfErase, p.key_dim),
        .remove = rows(kOfRemove, p.key_dim),
        .rate = rates.of(head)};
    HeadBackward(p, saved, layout, head, to, work).run(grad_out.data() + head * p.len * p.dim);
  });
  bonus.finish();
  log_decay.finish();
  rates.finish();
}

}  // namespace attn
