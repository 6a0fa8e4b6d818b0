// Gradients of one tile, in reverse order of chunked_tile.h. With dS the gradient of the state
// after the tile and S the state before:
//   dU = Pᵀ·dO + K"·dS;  delta rule: Y = V - K'·S, dY = diag(β)·W with
//   W = dU - tril(A, -1)ᵀ·dY by back substitution, dβ_i = r_i·W_i, dV = dY;  else dV = dU
//   dP = tril(dO·Uᵀ), dA = -tril(dY·Uᵀ, -1), dQ' = dO·Sᵀ, dK' = -dY·Sᵀ, dK" = U·dSᵀ
//   dS_before = total⊙dS + Q'ᵀ·dO - K'ᵀ·dY
// An exponent's gradient is the product of a row with its own gradient: those of H_i from q_i·dq_i,
// those of -G_j from k_j·dk_j. Log-decays get the sums over the later rows of the tile. About
// 10·n·m·d FLOPs, the delta rule 14, and about twice the pairs of a forward for each product of
// them.
#pragma once

#include "variants/chunked/chunked_tile.h"

namespace attn {

// Where the gradients of a head are added; null: not needed.
struct HeadGradients {
  real *q = nullptr, *k = nullptr, *v = nullptr;
  real* log_decay = nullptr;  // of the first step, or the head's for Decay::head
  real *beta = nullptr, *bonus = nullptr;
};

class TileGradient : public ChunkedTile {
 public:
  struct Layout {
    Layout(const ChunkedProblem& p, WorkspaceParts& parts);
    ChunkedTile::Layout tile;
    int64_t state_panel, grad_panel, written_panel, grad_written, grad_weights, grad_erase, grad_q,
        grad_k, grad_k_read, grad_k_pair, grad_sums, dots;
  };
  TileGradient(const ChunkedProblem& p, const HeadArrays& head, const Layout& layout, real* work,
               const HeadGradients& to)
      : ChunkedTile(p, head, layout.tile, work), parts_(layout), to_(to) {}

  // What the forward computed from the state before the tile: -tril(A, -1), R and U; without the
  // delta rule, U alone.
  struct Forward {
    const real *state, *erase, *residual, *written;
  };
  // grad_out: of the head's first row. grad_state becomes that of the state before the tile.
  void add(const Forward& forward, const real* grad_out, real* grad_state);
  // The padded queries, which read the last state; they are no rows of a tile.
  void add_padding(int64_t length, const real* state, const real* grad_out, real* grad_state);

 private:
  real* part(int64_t at) const { return work_ + at; }
  void back_substitute(const Forward& forward);
  void pairs(const real* grad_out, const Forward& forward);
  void pairs_one_by_one();
  void decays(const Forward& forward, const real* grad_state);
  void add_bonus(const real* grad_out, const real* written);

  const Layout parts_;
  const HeadGradients to_;
};

}  // namespace attn
