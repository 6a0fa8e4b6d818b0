// One tile of a head: consecutive rows whose pairs are computed at once, as products, between the
// state before and after. With the factors of tile_decay.h, Q' = read⊙Q, K' = read⊙K, K" = write⊙K,
// and the weights of pairs P_ij = q_i·k_j and A_ij = k_i·k_j, each times pairs_ij:
//   O = Q'·S + tril(P)·U,  S_next = total⊙S + K"ᵀ·U,  U = V, or for the delta rule
//   U = diag(β)·R,  (I + tril(A, -1)·diag(β))·R = V - K'·S
// by forward substitution. Yang et al. 2024, arXiv:2406.06484, section 3.2, without the inverse:
// the state is at hand. With a bonus, P_ii = q_i·diag(u)·k_i. A removal has a second key b, which
// the state is written at beside k, and reads with E' = before⊙E:
//   O = Q'·S + tril(P)·V + tril(P^b)·R,  S_next = total⊙S + K"ᵀ·V + B"ᵀ·R,
//   (I + tril(A^b, -1))·R = -E'·S - tril(A, -1)·V,  A_ij = e_i·k_j,  A^b_ij = e_i·b_j
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/simd/product.h"
#include "core/simd/transpose.h"
#include "variants/chunked/tile_decay.h"

namespace attn {

class ChunkedTile {
 public:
  struct Layout {
    Layout(const ChunkedProblem& p, WorkspaceParts& parts);
    TileDecay::Layout decay;
    struct KeyParts {
      int64_t write, pair, panel;
    };
    KeyParts keys[2];
    int64_t q_read, q_pair, e_read, e_pair, weights, row;
  };
  ChunkedTile(const ChunkedProblem& p, const HeadArrays& head, const Layout& layout, real* work)
      : p_(p), head_(head), at_(layout), work_(work), decay_(p, layout.decay, work) {}

  void set(int64_t first, int64_t rows);
  // Asks for rows of a later tile: tiles are shorter than what the processor fetches ahead.
  void prefetch_queries(int64_t first, int64_t rows) const;
  void prefetch_keys(int64_t first, int64_t rows) const;
  // -tril(A, -1), or with a removal -tril(A^b, -1): of tile() columns.
  void erase_weights(real* out);
  // R and U from the state before the tile, [rows, d] each; with a removal, `solved` is `residual`.
  void solve(const real* state, const real* erase, real* residual, real* solved);
  // `solved` is U, or with a removal R; unused where nothing is solved.
  void outputs(const real* state, const real* solved, real* out);
  // The state after the tile from that before, which may be in the same place.
  void advance(const real* solved, const real* before, real* after);

 protected:
  // The keys that the state is written at: k, and with a removal b.
  struct Keys {
    const real* rows = nullptr;   // of the tile's first row
    const real* write = nullptr;  // times what the state after the tile holds of them
    const real* pair = nullptr;   // the factor of a pair's weight, up to pairs()
    Right packed;                 // pairᵀ; no data: not yet made
  };
  // What is written at keys number `which`.
  const real* values(int64_t which, const real* solved) const {
    return p_.delta || which == 1 ? solved : v_;
  }
  // tril(P) of keys number `which`, or with a bonus its strictly lower part and the bonus: of
  // tile() columns.
  const real* read_weights(int64_t which);
  // -tril(A, -1) of the values that a removal reads at k.
  const real* erased_values();
  // Multiplies the lower triangle by `factor` and the pairs' decay, where all channels have one;
  // sets to 0 what is above it, up to the end of the strip. strict: the diagonal too.
  void mask(bool strict, real factor, real* weights) const;
  // x·yᵀ of the rows, strip by strip, up to the last column of the strip; y is packed.
  void products_of_rows(const real* x, Right y, int64_t depth, real* out);
  // out [rows, cols] += W·x or Wᵀ·x, where W is lower triangular.
  void add_lower(const real* weights, const real* x, int64_t cols, real* out);
  void add_lower_transposed(const real* weights, const real* x, int64_t cols, real* out);
  // What the log-decays of the rows are of.
  const real* decay_rows() const {
    return head_.log_decay + (p_.decay == Decay::head ? 0 : first_ * p_.decays());
  }
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
  const real *q_ = nullptr, *v_ = nullptr;  // of the tile's first row
  const real* e_ = nullptr;                 // k, or with a removal e
  const real *q_read_ = nullptr, *e_read_ = nullptr;
  const real *q_pair_ = nullptr, *e_pair_ = nullptr;  // the factors of weights P and A
  Keys keys_[2];

 private:
  // Of P, or of A if `erase`, with keys number `which`.
  void pair_weights(bool erase, int64_t which, real* out);
  void pairs_one_by_one(bool erase, int64_t which, real* out);
  void scale_rows();
  void scale_channels();
  // x⊙factors [rows, m] to `pair`, and times `by` [m], unless it is null, to `state`; returns which
  // of the two meets the state.
  const real* scale_by(const real* x, const real* factors, const real* by, real* pair,
                       real* state) const;
};

// xᵀ as the right operand of a product, from x [rows, depth] and a place of packed_reals(rows,
// depth) numbers. Of few rows, panels as wide as they are take that much less of the cache.
inline Right transposed(const real* x, int64_t rows, int64_t depth, real* to) {
  const KernelMark mark(Part::packing);
  const int64_t width = std::min(rows, kPanel);
  for (int64_t first = 0; first < rows; first += width)
    transpose(std::min(width, rows - first), depth, x + first * depth, depth, to + first * depth,
              width);
  return {to, width, depth * kPanel};
}

// Into the second-level cache; a null x is nothing.
inline void prefetch_rows(const real* x, int64_t first, int64_t rows, int64_t width) {
  constexpr int64_t kLine = 64 / sizeof(real);
  for (int64_t i = 0; x && i < rows * width; i += kLine)
    __builtin_prefetch(x + first * width + i, 0, 2);
}

inline void multiply_all(int64_t count, double factor, real* x) {
  if (factor == 1) return;
  for (int64_t i = 0; i < count; ++i) x[i] *= static_cast<real>(factor);
}

}  // namespace attn
