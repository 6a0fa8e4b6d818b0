// The decays of the rows of one tile. With G_i the sum of the log-decays of the tile's rows up to
// row i, and H_i = G_i, or G_{i-1} where outputs read the state before the write (bonus):
//   read    e^(H_i)        what row i still sees of the state before the tile
//   write   e^(G_last-G_j) what the state after the tile still holds of row j
//   total   e^(G_last)     what it still holds of the state before
//   pairs   e^(H_i-G_j)    what row i still sees of row j <= i (bonus: j < i)
// Sums restart in each tile and are kept in double, so that a large decay does not cost the later
// rows their digits. No exponent is above 0, except that of the factored form: for each channel,
// the pair is (q_i·e^(H_i))·(k_j·e^(-G_j)), where -G_j is at most kLargestFactor. A tile that
// decays more computes its pairs one by one.
#pragma once

#include <cstdint>

#include "core/base/workspace.h"
#include "variants/chunked/chunked_problem.h"

namespace attn {

class TileDecay {
 public:
  struct Layout {
    Layout(const ChunkedProblem& p, WorkspaceParts& parts);
    int64_t sums, rounded, read, write, inverse, total, pairs, pair_row;
  };
  // What the largest sum of a tile's log-decays may be for the factored form. A sum of up to 40
  // is rounded by 2e-6 in float, and e^40 times a key is far from the largest float.
  static constexpr double kLargestFactor = 40;

  TileDecay(const ChunkedProblem& p, const Layout& layout, real* work)
      : p_(p), at_(layout), work_(work) {}
  // log_decay: of the first row; of all rows for Decay::head. Not for Decay::none.
  void set(const real* log_decay, int64_t rows);

  bool of_channels() const { return p_.decay == Decay::channel; }
  bool factored() const { return factored_; }  // with a decay for each channel
  // [rows], or [rows, m] with a decay for each channel.
  const real* read() const { return work_ + at_.read; }
  const real* write() const { return work_ + at_.write; }
  const real* inverse() const { return work_ + at_.inverse; }  // e^(-G_j), where factored()
  const real* total() const { return work_ + at_.total; }      // [m]
  // Row i of the pairs with one decay for all channels: [i + 1], with a bonus [i].
  const real* pairs(int64_t i) const { return work_ + at_.pairs + i * p_.tile(); }
  // With a decay for each channel: fills a buffer with the rows e^(H_i - G_j), [count, m], j <
  // count.
  real* pair_row(int64_t i, int64_t count) const;
  // out = x ⊙ factors, where factors is one of read(), write(), inverse(); x, out [rows, m].
  void scale(const real* x, const real* factors, real* out) const;

 private:
  // G_i, or with i = -1 zeros, and H_i: [1], or [m] with a decay for each channel.
  double* sum(int64_t i) const {
    return reinterpret_cast<double*>(work_ + at_.sums) + (i + 1) * p_.decays();
  }
  const double* read_sum(int64_t i) const { return sum(p_.bonus ? i - 1 : i); }
  void set_rows();
  void set_channels();

  const ChunkedProblem& p_;
  const Layout at_;
  real* const work_;
  int64_t rows_ = 0;
  real head_decay_ = 0;  // of the rows that are set, for Decay::head
  bool factored_ = false;
};

}  // namespace attn
