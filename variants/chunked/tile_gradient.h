// Gradients of one tile, in reverse order of chunked_tile.h. With dS the gradient of the state
// after the tile and S the state before:
//   dU = Pᵀ·dO + K"·dS;  delta rule: Y = V - K'·S, dY = diag(β)·W with
//   W = dU - tril(A, -1)ᵀ·dY by back substitution, dβ_i = r_i·W_i, dV = dY;  else dV = dU
//   removal: dU of b; Z = dU - tril(A^b, -1)ᵀ·Z, dV = Pᵀ·dO + K"·dS - tril(A, -1)ᵀ·Z, and below Z
//   in the place of dY, E' of K', and both keys with what is written at them
//   dP = tril(dO·Uᵀ), dA = -tril(dY·Uᵀ, -1), dQ' = dO·Sᵀ, dK' = -dY·Sᵀ, dK" = U·dSᵀ
//   dS_before = total⊙dS + Q'ᵀ·dO - K'ᵀ·dY
// An exponent's gradient is the product of a row with its own gradient: those of H_i from q_i·dq_i,
// those of -G_j from k_j·dk_j. Log-decays get the sums over the later rows of the tile. About
// 10·n·m·d FLOPs, the delta rule 14, a removal 20, and about twice the pairs of a forward for each
// product of them.
#pragma once

#include "variants/chunked/chunked_tile.h"

namespace attn {

// Where the gradients of a head are added; null: not needed.
struct HeadGradients {
  real *q = nullptr, *k = nullptr, *v = nullptr;
  real* log_decay = nullptr;  // of the first step, or the head's for Decay::head
  real *beta = nullptr, *bonus = nullptr, *erase = nullptr, *remove = nullptr;
  real* rate = nullptr;  // of the head
};

inline void add_row(real* to, const real* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

class TileGradient : public ChunkedTile {
 public:
  struct Layout {
    Layout(const ChunkedProblem& p, WorkspaceParts& parts);
    int64_t grad_out, state_panel, grad_panel, written_panel, grad_written, grad_v, grad_weights,
        grad_erase, grad_q, grad_k[2], grad_e, grad_sums, grad_logs, slopes, dots;
  };
  // `tile_work` holds what set() computes; several tiles may share `work`.
  TileGradient(const ChunkedProblem& p, const HeadArrays& head, const ChunkedTile::Layout& tile,
               real* tile_work, const Layout& layout, real* work, const HeadGradients& to)
      : ChunkedTile(p, head, tile, tile_work), parts_(layout), shared_(work), to_(to) {}

  // What the forward computed from the state before the tile: erase_weights(), R, and `solved` of
  // outputs(); unused where nothing is solved.
  struct Forward {
    const real *state, *erase, *residual, *solved;
  };
  // grad_out: of the head's first row. grad_state becomes that of the state before the tile.
  void add(const Forward& forward, const real* grad_out, real* grad_state);
  // Asks for what the tile so many rows before reads and adds to.
  void prefetch_before(int64_t rows, const real* grad_out) const;
  // The padded queries, which read the last state; they are no rows of a tile.
  void add_padding(int64_t length, const real* state, const real* grad_out, real* grad_state);

 private:
  real* part(int64_t at) const { return shared_ + at; }
  const real* scaled(const real* grad_out, int64_t rows) const;
  void written(const Forward& forward, const real* grad_out, const real* grad_state);
  void back_substitute(const Forward& forward);
  void states(const Forward& forward, const real* grad_out, const real* grad_state);
  void pairs(const real* grad_out, const Forward& forward);
  void pairs_of(int64_t which, const real* grad_out, const real* values);
  void pairs_one_by_one(bool erase, int64_t which);
  void scale_rows();
  void scale_channels();
  void last_sums(const Forward& forward, const real* grad_state);
  bool of_decays() const { return to_.log_decay || to_.rate; }
  void add_rows();
  void add_channels();
  void add_decays();
  void add_bonus(const real* grad_out);

  const Layout parts_;
  real* const shared_;
  const HeadGradients to_;
};

}  // namespace attn
