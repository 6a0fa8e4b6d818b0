// One chunk of level_attention(): its pairs, what it reads from blocks of chunks, and what it
// writes. Sums of log-decays before each chunk are kept in double, so that the decay from a block
// to a reader keeps its digits.
#pragma once

#include <cmath>
#include <span>

#include "core/base/marks.h"
#include "core/simd/rows.h"
#include "variants/chunked/chunked_tile.h"
#include "variants/chunked/level_attention.h"

namespace attn {

class LevelTile : public ChunkedTile {
 public:
  struct Layout {
    Layout(const LevelProblem& p, WorkspaceParts& parts) : tile(p.tiles, parts) {
      scaled = parts.take(p.tiles.tile() * p.tiles.key_dim);
      sums = parts.take((p.chunks() + 1) * static_cast<int64_t>(sizeof(double) / sizeof(real)));
    }
    ChunkedTile::Layout tile;
    int64_t scaled, sums;
  };
  LevelTile(const LevelProblem& p, const HeadArrays& head, const real* weights,
            const Layout& layout, real* work)
      : ChunkedTile(p.tiles, head, layout.tile, work),
        problem_(p),
        of_levels_(weights),
        scaled_(work + layout.scaled),
        sums_(reinterpret_cast<double*>(work + layout.sums)) {
    double sum = sums_[0] = 0;
    const real* log_decay = head.log_decay;
    for (int64_t c = 0; c < p.chunks(); ++c) {
      for (int64_t i = 0; i < p.rows(c); ++i) sum += static_cast<double>(*log_decay++);
      sums_[c + 1] = sum;
    }
  }

  void set_chunk(int64_t c) {
    chunk_ = c;
    set(c * problem_.tiles.chunk, problem_.rows(c));
  }
  // What is left of the block up to chunk `last` before this chunk, and after it.
  real left_before(int64_t last) const { return left(last, chunk_); }
  real left_after(int64_t last) const { return left(last, chunk_ + 1); }

  const real* weights_of(int64_t i) const { return of_levels_ + (first_ + i) * problem_.levels; }
  // The queries times their decays, their weights of a level, and a factor.
  const real* queries_of(int64_t level, real factor) {
    const Mark mark(Part::elementwise);
    const int64_t m = p_.key_dim;
    for (int64_t i = 0; i < rows_; ++i) {
      const real by = factor * weights_of(i)[level];
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < m; ++c) scaled_[i * m + c] = by * q_read_[i * m + c];
    }
    return scaled_;
  }
  // to = pairs⊙w, rows of tile() columns; what is above the diagonal is copied.
  void weigh(const real* pairs, real* to) const {
    const Mark mark(Part::scores);
    const int64_t tile = p_.tile();
    for (int64_t i = 0; i < rows_; ++i, pairs += tile, to += tile) {
      const real* const weights = weights_of(i);
      each_level(i, [&](int64_t level, int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; ++j) to[j] = weights[level] * pairs[j];
      });
      const int64_t strip = ChunkedProblem::kStrip;
      const int64_t end = std::min(rows_, (i / strip + 1) * strip);
      for (int64_t j = i + 1; j < end; ++j) to[j] = pairs[j];
    }
  }
  // The state of the block that ends with this chunk; `state_of(z, last)` are those it absorbs.
  template <class StateOf>
  void write(const StateOf& state_of, real* state) {
    const int64_t m = p_.key_dim, d = p_.dim;
    multiply(m, d, rows_, {keys_[0].write, 1, m}, {v_, d}, state, d);
    const Mark mark(Part::sums);
    each_absorbed([&](int64_t z, int64_t last) {
      add_scaled(m * d, left_after(last), state_of(z, last), state);
    });
  }
  // f(z, last) of each block that the block which ends with this chunk absorbs.
  template <class F>
  void each_absorbed(F&& f) const {
    const int64_t size = LevelProblem::block_after(chunk_);
    LevelProblem::each_block(chunk_, [&](int64_t z, int64_t last) {
      if (z < size) f(z, last);
    });
  }
  template <class StateOf>
  void outputs(const StateOf& state_of, real* weights, real* out) {
    const int64_t m = p_.key_dim, d = p_.dim;
    std::fill_n(out, rows_ * d, real(0));
    weigh(read_weights(0), weights);
    add_lower(weights, v_, d, out);
    LevelProblem::each_block(chunk_, [&](int64_t z, int64_t last) {
      const real* const queries = queries_of(problem_.level(z), left_before(last));
      multiply_add(rows_, d, m, {queries, m}, {state_of(z, last), d}, out, d);
    });
  }

 protected:
  static void add_scaled(int64_t count, real factor, const real* from, real* to) {
    ATTN_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
  }
  real left(int64_t last, int64_t chunk) const {
    return static_cast<real>(std::exp(sums_[chunk] - sums_[last + 1]));
  }

  const LevelProblem& problem_;
  const real* const of_levels_;  // of the head's first row
  real* const scaled_;
  double* const sums_;  // of log-decays before each chunk
  int64_t chunk_ = 0;
};

}  // namespace attn
