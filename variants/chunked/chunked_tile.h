// One tile of a head: consecutive rows whose pairs are computed at once, as products, between the
// state before and after. With the factors of tile_decay.h, Q' = read⊙Q, K' = read⊙K, K" = write⊙K,
// and the weights of pairs P_ij = q_i·k_j and A_ij = k_i·k_j, each times pairs_ij:
//   O = Q'·S + tril(P)·U,  S_next = total⊙S + K"ᵀ·U,  U = V, or for the delta rule
//   U = diag(β)·R,  (I + tril(A, -1)·diag(β))·R = V - K'·S
// by forward substitution. Yang et al. 2024, arXiv:2406.06484, section 3.2, without the inverse:
// the state is at hand. With a bonus, P_ii = q_i·diag(u)·k_i.
#pragma once

#include <cstdint>

#include "core/base/counters.h"
#include "core/simd/product.h"
#include "variants/chunked/tile_decay.h"

namespace attn {

class ChunkedTile {
 public:
  struct Layout {
    Layout(const ChunkedProblem& p, WorkspaceParts& parts);
    TileDecay::Layout decay;
    int64_t q_read, k_read, k_write, k_pair, key_panel, weights, row;
  };
  ChunkedTile(const ChunkedProblem& p, const HeadArrays& head, const Layout& layout, real* work)
      : p_(p), head_(head), at_(layout), work_(work), decay_(p, layout.decay, work) {}

  void set(int64_t first, int64_t rows);
  // -tril(A, -1), of tile() columns.
  void erase_weights(real* out);
  // R and U from the state before the tile; [rows, d] each.
  void solve(const real* state, const real* erase, real* residual, real* written);
  void outputs(const real* state, const real* written, real* out);
  void advance(const real* written, real* state);

 protected:
  // tril(P), or with a bonus its strictly lower part and the bonus: of tile() columns.
  const real* read_weights();
  // Multiplies the lower triangle by `factor` and the pairs' decay, where all channels have one;
  // sets to 0 what is above it, up to the end of the strip. strict: the diagonal too.
  void mask(bool strict, real factor, real* weights) const;
  // x·yᵀ of the rows, strip by strip, up to the last column of the strip; y is packed.
  void products_of_rows(const real* x, Right y, int64_t depth, real* out);
  // out [rows, cols] += W·x or Wᵀ·x, where W is lower triangular.
  void add_lower(const real* weights, const real* x, int64_t cols, real* out);
  void add_lower_transposed(const real* weights, const real* x, int64_t cols, real* out);
  bool one_by_one() const { return decay_.of_channels() && !decay_.factored(); }

  void multiply(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c, int64_t row) {
    product(rows, cols, depth, a, b, c, row);
    done_.multiply_adds(rows * cols * depth);
  }
  void multiply_add(int64_t rows, int64_t cols, int64_t depth, Left a, Right b, real* c,
                    int64_t row, const real* factors = nullptr) {
    add_product(rows, cols, depth, a, b, c, row, factors);
    done_.multiply_adds(rows * cols * depth);
  }
  const real* total() const { return p_.decay == Decay::none ? nullptr : decay_.total(); }

  const ChunkedProblem& p_;
  const HeadArrays head_;
  const Layout at_;
  real* const work_;
  TileDecay decay_;
  Tally done_;
  int64_t first_ = -1, rows_ = 0;
  const real *q_ = nullptr, *k_ = nullptr, *v_ = nullptr;  // of the tile's first row
  const real *q_read_ = nullptr, *k_read_ = nullptr, *k_write_ = nullptr;
  // The rows whose products are the weights of pairs, up to pairs(): as queries (of P, of A) and as
  // keys.
  const real *q_pair_ = nullptr, *k_query_ = nullptr, *k_pair_ = nullptr;

 private:
  void pair_weights(const real* queries, bool strict, real factor, real* out);
  void pairs_one_by_one(const real* queries, bool strict, real factor, real* out);

  bool packed_ = false;  // k_pair_, in the key panel
};

}  // namespace attn
