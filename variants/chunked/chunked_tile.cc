// Products of one tile; see chunked_tile.h. Of n rows: 4·n·m·d FLOPs for the state, the delta rule
// 6, and about n²·(m + d) for pairs, the delta rule n²·(2·m + 2·d).
#include "variants/chunked/chunked_tile.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kBlock = 16;  // rows of forward substitution that are solved one by one

}  // namespace

ChunkedTile::Layout::Layout(const ChunkedProblem& p, WorkspaceParts& parts) : decay(p, parts) {
  const int64_t rows = p.tile(), numbers = p.decay == Decay::none ? 0 : rows * p.key_dim;
  q_read = parts.take(numbers);
  k_read = parts.take(p.delta ? numbers : 0);
  k_write = parts.take(numbers);
  k_pair = parts.take(p.decay == Decay::channel ? numbers : 0);
  key_panel = parts.take(packed_reals(rows, p.key_dim));
  weights = parts.take(rows * rows);
  row = parts.take(p.key_dim);
}

void ChunkedTile::set(int64_t first, int64_t rows) {
  if (first == first_ && rows == rows_) return;
  first_ = first, rows_ = rows, packed_ = false;
  const int64_t m = p_.key_dim;
  q_ = head_.q + first * m, k_ = head_.k + first * m, v_ = head_.v + first * p_.dim;
  q_read_ = q_pair_ = q_;
  k_read_ = k_write_ = k_query_ = k_pair_ = k_;
  if (p_.decay == Decay::none) return;
  decay_.set(head_.log_decay + (p_.decay == Decay::head ? 0 : first * p_.decays()), rows);
  const auto scaled = [&](const real* x, const real* factors, int64_t to) {
    decay_.scale(x, factors, work_ + to);
    return work_ + to;
  };
  q_read_ = scaled(q_, decay_.read(), at_.q_read);
  if (p_.delta) k_read_ = scaled(k_, decay_.read(), at_.k_read);
  k_write_ = scaled(k_, decay_.write(), at_.k_write);
  if (!decay_.of_channels() || one_by_one()) return;
  q_pair_ = q_read_, k_query_ = k_read_;
  k_pair_ = scaled(k_, decay_.inverse(), at_.k_pair);
}

void ChunkedTile::products_of_rows(const real* x, Right y, int64_t depth, real* out) {
  for (int64_t first = 0; first < rows_; first += ChunkedProblem::kStrip) {
    const int64_t end = std::min(rows_, first + ChunkedProblem::kStrip);
    multiply(end - first, end, depth, {x + first * depth, depth}, y, out + first * p_.tile(),
             p_.tile());
  }
}

void ChunkedTile::mask(bool strict, real factor, real* weights) const {
  const Mark mark(Part::masks);
  const bool decays = p_.decay != Decay::none && !decay_.of_channels();
  for (int64_t i = 0; i < rows_; ++i) {
    const int64_t end = std::min(rows_, (i / ChunkedProblem::kStrip + 1) * ChunkedProblem::kStrip);
    const int64_t visible = strict ? i : i + 1;
    real* const row = weights + i * p_.tile();
    if (decays) {
      const real* const by = decay_.pairs(i);
      for (int64_t j = 0; j < visible; ++j) row[j] *= factor * by[j];
    } else if (factor != 1) {
      for (int64_t j = 0; j < visible; ++j) row[j] *= factor;
    }
    std::fill(row + visible, row + end, real(0));
  }
}

void ChunkedTile::pair_weights(const real* queries, bool strict, real factor, real* out) {
  if (one_by_one()) return pairs_one_by_one(queries, strict, factor, out);
  real* const panel = work_ + at_.key_panel;
  if (!packed_) pack_transposed(k_pair_, rows_, p_.key_dim, p_.key_dim, panel);
  packed_ = true;
  products_of_rows(queries, packed(panel, p_.key_dim), p_.key_dim, out);
  mask(strict, factor, out);
}

void ChunkedTile::pairs_one_by_one(const real* queries, bool strict, real factor, real* out) {
  const Mark mark(Part::scores);
  const int64_t m = p_.key_dim;
  for (int64_t i = 0; i < rows_; ++i) {
    const int64_t count = strict ? i : i + 1;
    real* const keys = decay_.pair_row(i, count);
    for (int64_t n = 0; n < count * m; ++n) keys[n] *= k_[n];
    dots_of_rows(count, m, keys, m, queries + i * m, 0, out + i * p_.tile());
  }
  // As the product that this replaces: FLOPs do not depend on the data.
  done_.multiply_adds(rows_ * rows_ * m);
  mask(strict, factor, out);
}

const real* ChunkedTile::read_weights() {
  real* const weights = work_ + at_.weights;
  pair_weights(q_pair_, p_.bonus, 1, weights);
  if (!p_.bonus) return weights;
  const int64_t m = p_.key_dim;
  real* const row = work_ + at_.row;
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t c = 0; c < m; ++c) row[c] = head_.bonus[c] * k_[i * m + c];
    weights[i * p_.tile() + i] = row_dot(q_ + i * m, row, m);
  }
  done_.multiply_adds(rows_ * m);
  return weights;
}

void ChunkedTile::erase_weights(real* out) { pair_weights(k_query_, true, -1, out); }

void ChunkedTile::add_lower(const real* weights, const real* x, int64_t cols, real* out) {
  for (int64_t first = 0; first < rows_; first += ChunkedProblem::kStrip) {
    const int64_t end = std::min(rows_, first + ChunkedProblem::kStrip);
    multiply_add(end - first, cols, end, {weights + first * p_.tile(), p_.tile()}, {x, cols},
                 out + first * cols, cols);
  }
}

void ChunkedTile::add_lower_transposed(const real* weights, const real* x, int64_t cols,
                                       real* out) {
  const int64_t tile = p_.tile();
  for (int64_t first = 0; first < rows_; first += ChunkedProblem::kStrip) {
    const int64_t count = std::min(ChunkedProblem::kStrip, rows_ - first);
    multiply_add(count, cols, rows_ - first, {weights + first * tile + first, 1, tile},
                 {x + first * cols, cols}, out + first * cols, cols);
  }
}

void ChunkedTile::solve(const real* state, const real* erase, real* residual, real* written) {
  const int64_t d = p_.dim, tile = p_.tile();
  multiply(rows_, d, p_.key_dim, {k_read_, p_.key_dim}, {state, d}, residual, d);
  const Mark mark(Part::recurrence);
  for (int64_t n = 0; n < rows_ * d; ++n) residual[n] = v_[n] - residual[n];
  for (int64_t begin = 0; begin < rows_; begin += kBlock) {
    const int64_t end = std::min(rows_, begin + kBlock);
    if (begin > 0)
      multiply_add(end - begin, d, begin, {erase + begin * tile, tile}, {written, d},
                   residual + begin * d, d);
    for (int64_t i = begin; i < end; ++i) {
      real* const row = residual + i * d;
      if (i > begin)
        multiply_add(1, d, i - begin, {erase + i * tile + begin, tile}, {written + begin * d, d},
                     row, d);
      const real beta = head_.beta[first_ + i];
      for (int64_t c = 0; c < d; ++c) written[i * d + c] = beta * row[c];
    }
  }
}

void ChunkedTile::outputs(const real* state, const real* written, real* out) {
  multiply(rows_, p_.dim, p_.key_dim, {q_read_, p_.key_dim}, {state, p_.dim}, out, p_.dim);
  add_lower(read_weights(), written, p_.dim, out);
}

void ChunkedTile::advance(const real* written, real* state) {
  multiply_add(p_.key_dim, p_.dim, rows_, {k_write_, 1, p_.key_dim}, {written, p_.dim}, state,
               p_.dim, total());
}

}  // namespace attn
