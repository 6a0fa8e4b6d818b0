// The decays of the rows of one tile. With G_i the sum of the log-decays of the tile's rows up to
// row i, and H_i = G_i, or G_{i-1} where outputs read the state before the write (bonus):
//   read    e^(H_i)        what row i still sees of the state before the tile; a removal, which
//                          reads the state before the decay, sees e^(G_{i-1}) of it
//   write   e^(G_last-G_j) what the state after the tile still holds of row j
//   total   e^(G_last)     what it still holds of the state before
//   pairs   e^(H_i-G_j)    what row i still sees of row j <= i (bonus: j < i)
// Sums restart in each tile and are rounded once, so that a large decay does not cost the later
// rows their digits. No exponent is above 0, except that of the factored form: for each channel,
// the pair is (q_i·e^(H_i-s))·(k_j·e^(s-G_j)), where s is 0, or G_last/2 where that keeps exponents
// at most kLargestFactor. A tile that decays more computes its pairs one by one.
#pragma once

#include <cstdint>

#include "core/base/workspace.h"
#include "variants/chunked/chunked_problem.h"

namespace attn {

class TileDecay {
 public:
  struct Layout {
    Layout(const ChunkedProblem& p, WorkspaceParts& parts);
    int64_t sums, rounded, read, write, total, pairs, pair_row, last, shift, lead, tail, logs;
  };
  // The largest exponent of the factored form. A sum of up to 40 is rounded by 2e-6 in float, and
  // e^40 times a key is far from the largest float.
  static constexpr double kLargestFactor = 40;

  TileDecay(const ChunkedProblem& p, const Layout& layout, real* work)
      : p_(p), at_(layout), work_(work) {}
  // x: what the log-decay of the first row is of; of all rows for Decay::head. Not for Decay::none.
  void set(const real* x, const HeadDecay& of, int64_t rows);
  const real* logs() const { return logs_; }  // the log-decays, as x

  bool of_channels() const { return p_.decay == Decay::channel; }
  const real* total() const { return work_ + at_.total; }  // [m]

  // With one decay for all channels. [rows]; row i of the pairs: [i + 1], with a bonus [i].
  const real* read() const { return work_ + at_.read; }
  const real* write() const { return work_ + at_.write; }
  const real* pairs(int64_t i) const { return work_ + at_.pairs + i * p_.tile(); }
  // out = factors_i·x_i, x and out [rows, m].
  void scale(const real* x, const real* factors, real* out) const;

  // With a decay for each channel, [rows, m]: of queries e^(H_i-s), of what erases the same or
  // e^(G_{i-1}-s), of keys e^(s-G_j), or e^(G_last-G_j) where pairs are computed one by one.
  bool factored() const { return factored_; }
  const real* of_queries() const { return work_ + at_.read + (p_.bonus ? 0 : p_.key_dim); }
  const real* of_erasers() const { return work_ + at_.read + (p_.removal ? 0 : p_.key_dim); }
  const real* of_keys() const { return work_ + at_.write; }
  // [m]: e^s, which queries of the state take besides, and e^(G_last-s), which written keys take;
  // null: 1.
  const real* lead() const { return shifted_ ? work_ + at_.lead : nullptr; }
  const real* tail() const { return factored_ ? work_ + at_.tail : nullptr; }
  // Fills a buffer with the rows e^(H_i - G_j), or for what erases in a removal e^(G_{i-1} - G_j):
  // [count, m], j < count. Not where factored().
  real* pair_row(int64_t i, int64_t count, bool erase) const;

 private:
  // G_i, or with i = -1 zeros, and H_i: [1], or [m] with a decay for each channel.
  double* sum(int64_t i) const {
    return reinterpret_cast<double*>(work_ + at_.sums) + (i + 1) * p_.decays();
  }
  const double* read_sum(int64_t i) const { return sum(p_.bonus ? i - 1 : i); }
  void set_sums();
  void set_rows();
  void set_channels();

  const ChunkedProblem& p_;
  const Layout at_;
  real* const work_;
  int64_t rows_ = 0;
  const real* logs_ = nullptr;
  real head_decay_ = 0;  // of the rows that are set, for Decay::head
  bool factored_ = false, shifted_ = false;
};

}  // namespace attn
