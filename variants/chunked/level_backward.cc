// Backward of level_attention(): the chunks of each head from the last to the first. The gradient
// of a block's state is complete when its last chunk is reached, since its readers come later. An
// exponent's gradient is the product of what it scales with the gradient of that, as in
// tile_gradient.h; the decay of a chunk that lies between a block and its reader gets what passes
// over it.
#include <array>

#include "core/base/workers.h"
#include "variants/chunked/level_tile.h"

namespace attn {
namespace {

// The parts of a worker's workspace.
struct LevelParts {
  explicit LevelParts(const LevelProblem& p) : tile(p, parts) {
    const int64_t rows = p.tiles.tile(), m = p.tiles.key_dim, d = p.tiles.dim;
    weights = parts.take(rows * rows);
    grad_pairs = parts.take(rows * rows);
    state_panel = parts.take(packed_reals(m, d));
    value_panel = parts.take(packed_reals(rows, d));
    read = parts.take(rows * m);
    grad_q = parts.take(rows * m);
    grad_k = parts.take(rows * m);
    dots = parts.take(rows);
    blocks = parts.take(p.blocks() * p.tiles.state_reals());
    ended = parts.take(p.chunks() * static_cast<int64_t>(sizeof(double) / sizeof(real)));
  }
  WorkspaceParts parts;
  LevelTile::Layout tile;
  int64_t weights, grad_pairs, state_panel, value_panel, read, grad_q, grad_k, dots, blocks, ended;
};

// Where the gradients of a head are added; null: not needed.
struct LevelGradients {
  real *q, *k, *v, *log_decay, *weights;
};

class LevelBackward : public LevelTile {
 public:
  LevelBackward(const LevelProblem& p, const LevelSaved& s, const LevelParts& layout,
                int64_t number, const LevelGradients& to, real* work)
      : LevelTile(p, HeadArrays(p.tiles, s.rows, number),
                  s.weights.data() + number * p.tiles.len * p.levels, layout.tile, work),
        parts_(layout),
        to_(to),
        states_(s.rows.states.data() + number * p.chunks() * p.tiles.state_reals()),
        ended_(reinterpret_cast<double*>(work + layout.ended)) {
    owners_.fill(-1);
    std::fill_n(ended_, p.chunks(), 0.0);
  }

  // grad_out: of the head.
  void run(const real* grad_out) {
    for (int64_t c = problem_.chunks() - 1; c >= 0; --c) {
      set_chunk(c);
      passing_ -= ended_[c];
      add(grad_out + first_ * p_.dim);
    }
  }

 private:
  real* part(int64_t at) const { return work_ + at; }
  const real* state(int64_t last) const { return states_ + last * p_.state_reals(); }
  // The gradient of the block of 2^z chunks up to `last`: zeros at first.
  real* grad_state(int64_t z, int64_t last) {
    real* const grad = part(parts_.blocks) + z * p_.state_reals();
    int64_t& owner = owners_[static_cast<size_t>(z)];
    if (owner != last) std::fill_n(grad, p_.state_reals(), real(0));
    owner = last;
    return grad;
  }
  // From the block up to `last` to this chunk: `later` passes over the chunks between.
  void pass(int64_t last, double gradient) {
    if (last + 1 == chunk_) return;
    later_ += gradient, ended_[last] += gradient;
  }

  void add(const real* grad_out) {
    const int64_t numbers = rows_ * p_.key_dim;
    later_ = 0;
    std::fill_n(part(parts_.grad_q), numbers, real(0));
    double sum = passing_;  // of the log-decay of the last row
    if (chunk_ + 1 < problem_.chunks())
      sum += written();
    else
      std::fill_n(part(parts_.grad_k), numbers, real(0));
    LevelProblem::each_block(chunk_,
                             [&](int64_t z, int64_t last) { read_block(z, last, grad_out); });
    pairs(grad_out);
    add_rows(sum);
    passing_ += later_;
  }

  // Of the block that ends with this chunk: the gradients of written keys and values, and of the
  // blocks that it absorbed. Returns what the log-decay of the last row gets.
  double written() {
    const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
    const real* const grad = grad_state(LevelProblem::block_after(chunk_), chunk_);
    pack_transposed(grad, m, d, d, part(parts_.state_panel));
    multiply(n, m, d, {v_, d}, packed(part(parts_.state_panel), d), part(parts_.grad_k), m);
    if (to_.v) multiply_add(n, d, m, {keys_[0].write, m}, {grad, d}, to_.v + first_ * d, d);
    double sum = static_cast<double>(row_dot(keys_[0].write, part(parts_.grad_k), n * m));
    decay_.scale(part(parts_.grad_k), decay_.write(), part(parts_.grad_k));
    each_absorbed([&](int64_t z, int64_t last) {
      const Mark mark(Part::sums);
      const real left = left_after(last);
      add_scaled(m * d, left, grad, grad_state(z, last));
      const double passed = static_cast<double>(left * row_dot(state(last), grad, m * d));
      sum += passed;
      pass(last, passed);
    });
    return sum;
  }

  void read_block(int64_t z, int64_t last, const real* grad_out) {
    const int64_t n = rows_, m = p_.key_dim, d = p_.dim, level = problem_.level(z);
    const real left = left_before(last);
    pack_transposed(state(last), m, d, d, part(parts_.state_panel));
    real *const read = part(parts_.read), *const dots = part(parts_.dots);
    multiply(n, m, d, {grad_out, d}, packed(part(parts_.state_panel), d), read, m);
    const Mark mark(Part::elementwise);
    dots_of_rows(n, m, q_read_, m, read, m, dots);
    double passed = 0;
    for (int64_t i = 0; i < n; ++i) {
      const real weight = weights_of(i)[level];
      passed += static_cast<double>(weight * left * dots[i]);
      if (to_.weights) to_.weights[(first_ + i) * problem_.levels + level] += left * dots[i];
      add_scaled(m, weight * left * decay_.read()[i], read + i * m, part(parts_.grad_q) + i * m);
    }
    pass(last, passed);
    multiply_add(m, d, n, {queries_of(level, left), 1, m}, {grad_out, d}, grad_state(z, last), d);
  }

  void pairs(const real* grad_out) {
    const int64_t n = rows_, m = p_.key_dim, d = p_.dim, tile = p_.tile();
    const real* const of_pairs = read_weights(0);
    real *const weights = part(parts_.weights), *const grad = part(parts_.grad_pairs);
    weigh(of_pairs, weights);
    if (to_.v) add_lower_transposed(weights, grad_out, d, to_.v + first_ * d);
    pack_transposed(v_, n, d, d, part(parts_.value_panel));
    products_of_rows(grad_out, packed(part(parts_.value_panel), d), d, grad);
    if (to_.weights) {
      const Mark mark(Part::scores);
      for (int64_t i = 0; i < n; ++i)
        each_level(i, [&](int64_t level, int64_t begin, int64_t end) {
          to_.weights[(first_ + i) * problem_.levels + level] +=
              row_dot(grad + i * tile + begin, of_pairs + i * tile + begin, end - begin);
        });
    }
    mask(false, 1, grad);
    weigh(grad, grad);
    add_lower(grad, keys_[0].rows, m, part(parts_.grad_q));
    add_lower_transposed(grad, q_, m, part(parts_.grad_k));
  }

  // The gradients of queries, keys and log-decays; `sum` of the last row, but for its own.
  void add_rows(double sum) {
    const Mark mark(Part::elementwise);
    const int64_t n = rows_, m = p_.key_dim;
    const real *const grad_q = part(parts_.grad_q), *const grad_k = part(parts_.grad_k);
    for (int64_t i = n - 1; to_.log_decay && i >= 0; --i) {
      sum += static_cast<double>(row_dot(q_ + i * m, grad_q + i * m, m) -
                                 row_dot(keys_[0].rows + i * m, grad_k + i * m, m));
      to_.log_decay[first_ + i] += static_cast<real>(sum);
    }
    if (to_.q) add_scaled(n * m, 1, grad_q, to_.q + first_ * m);
    if (to_.k) add_scaled(n * m, 1, grad_k, to_.k + first_ * m);
  }

  const LevelParts& parts_;
  const LevelGradients to_;
  const real* const states_;
  double* const ended_;             // what no longer passes from a chunk on
  std::array<int64_t, 64> owners_;  // the last chunk of the block whose gradient a level holds
  double passing_ = 0, later_ = 0;  // over this chunk; over those before, from this one
};

}  // namespace

void level_backward(const LevelProblem& p, const LevelSaved& saved, const Tensor& grad_out,
                    std::span<Tensor> grads) {
  const MemoryScope scope(Purpose::workspace);
  const LevelParts layout(p);
  run_tasks(p.tiles.total_heads(), layout.parts.total(), [&](int64_t head, real* work) {
    const auto rows = [&](LevelInput input) {
      const Tensor& grad = grads[input];
      return grad.defined() ? grad.data() + head * p.tiles.len * grad.dim(3) : nullptr;
    };
    const LevelGradients to{rows(kLevelQ), rows(kLevelK), rows(kLevelV), rows(kLevelDecay),
                            rows(kLevelWeights)};
    LevelBackward(p, saved, layout, head, to, work)
        .run(grad_out.data() + head * p.tiles.len * p.tiles.dim);
  });
}

}  // namespace attn
