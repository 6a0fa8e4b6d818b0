// Products of one tile; see chunked_tile.h. Of n rows: 4·n·m·d FLOPs for the state, the delta rule
// 6, a removal 8, and about n²·(m + d) for pairs, the delta rule n²·(2·m + d), a removal
// n²·(4·m + 3·d).
#include "variants/chunked/chunked_tile.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

constexpr int64_t kBlock = 16;  // rows of forward substitution that are solved one by one

}  // namespace

ChunkedTile::Layout::Layout(const ChunkedProblem& p, WorkspaceParts& parts) : decay(p, parts) {
  const int64_t rows = p.tile(), numbers = p.decay == Decay::none ? 0 : rows * p.key_dim;
  q_read = parts.take(numbers);
  e_read = parts.take(p.solves() ? numbers : 0);
  const int64_t more = p.decay == Decay::channel ? numbers : 0;
  q_pair = parts.take(more);
  e_pair = parts.take(p.solves() ? more : 0);
  for (int64_t i = 0; i < p.writes(); ++i)
    keys[i] = {.write = parts.take(numbers),
               .pair = parts.take(more),
               .panel = parts.take(packed_reals(rows, p.key_dim))};
  weights = parts.take(rows * rows);
  row = parts.take(p.key_dim);
}

void ChunkedTile::set(int64_t first, int64_t rows) {
  if (first == first_ && rows == rows_) return;
  first_ = first, rows_ = rows;
  const int64_t at = first * p_.key_dim;
  q_ = head_.q + at, v_ = head_.v + first * p_.dim, e_ = (p_.removal ? head_.erase : head_.k) + at;
  q_read_ = q_pair_ = q_, e_read_ = e_pair_ = e_;
  for (int64_t i = 0; i < p_.writes(); ++i) {
    const real* const keys = (i == 0 ? head_.k : head_.remove) + at;
    keys_[i] = {.rows = keys, .write = keys, .pair = keys};
  }
  if (p_.decay == Decay::none) return;
  decay_.set(decay_rows(), head_.decay_of, rows);
  if (decay_.of_channels())
    scale_channels();
  else
    scale_rows();
}

void ChunkedTile::prefetch_queries(int64_t first, int64_t rows) const {
  for (const real* const x : {head_.q, head_.erase}) prefetch_rows(x, first, rows, p_.key_dim);
  if (p_.decay != Decay::head) prefetch_rows(head_.log_decay, first, rows, p_.decays());
}

void ChunkedTile::prefetch_keys(int64_t first, int64_t rows) const {
  for (const real* const x : {head_.k, head_.remove}) prefetch_rows(x, first, rows, p_.key_dim);
  prefetch_rows(head_.v, first, rows, p_.dim);
}

void ChunkedTile::scale_rows() {
  const auto scaled = [&](const real* x, const real* factors, int64_t to) {
    decay_.scale(x, factors, work_ + to);
    return work_ + to;
  };
  q_read_ = scaled(q_, decay_.read(), at_.q_read);
  if (p_.solves()) e_read_ = scaled(e_, decay_.read(), at_.e_read);
  for (int64_t i = 0; i < p_.writes(); ++i)
    keys_[i].write = scaled(keys_[i].rows, decay_.write(), at_.keys[i].write);
}

void ChunkedTile::scale_channels() {
  const Mark mark(Part::elementwise);
  real *const q_pair = work_ + at_.q_pair, *const e_pair = work_ + at_.e_pair;
  q_read_ = scale_by(q_, decay_.of_queries(), decay_.lead(), q_pair, work_ + at_.q_read);
  if (p_.solves())
    e_read_ = scale_by(e_, decay_.of_erasers(), decay_.lead(), e_pair, work_ + at_.e_read);
  for (int64_t i = 0; i < p_.writes(); ++i) {
    real* const pair = work_ + at_.keys[i].pair;
    keys_[i].write =
        scale_by(keys_[i].rows, decay_.of_keys(), decay_.tail(), pair, work_ + at_.keys[i].write);
    if (decay_.factored()) keys_[i].pair = pair;
  }
  if (decay_.factored()) q_pair_ = q_pair, e_pair_ = e_pair;
}

const real* ChunkedTile::scale_by(const real* x, const real* factors, const real* by, real* pair,
                                  real* state) const {
  const int64_t m = p_.key_dim;
  for (int64_t i = 0; i < rows_; ++i, x += m, factors += m, pair += m, state += m) {
    if (by) {
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < m; ++c) {
        const real scaled = x[c] * factors[c];
        pair[c] = scaled, state[c] = scaled * by[c];
      }
    } else {
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < m; ++c) pair[c] = x[c] * factors[c];
    }
  }
  return (by ? state : pair) - rows_ * m;
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

void ChunkedTile::pair_weights(bool erase, int64_t which, real* out) {
  if (one_by_one()) {
    pairs_one_by_one(erase, which, out);
  } else {
    real* const panel = work_ + at_.keys[which].panel;
    Keys& keys = keys_[which];
    if (!keys.packed.data) keys.packed = transposed(keys.pair, rows_, p_.key_dim, panel);
    products_of_rows(erase ? e_pair_ : q_pair_, keys.packed, p_.key_dim, out);
  }
  mask(erase || p_.bonus, erase ? -1 : 1, out);
}

void ChunkedTile::pairs_one_by_one(bool erase, int64_t which, real* out) {
  const Mark mark(Part::scores);
  const int64_t m = p_.key_dim;
  const real* const queries = erase ? e_ : q_;
  for (int64_t i = 0; i < rows_; ++i) {
    const int64_t count = erase || p_.bonus ? i : i + 1;
    real* const keys = decay_.pair_row(i, count, erase);
    for (int64_t n = 0; n < count * m; ++n) keys[n] *= keys_[which].rows[n];
    dots_of_rows(count, m, keys, m, queries + i * m, 0, out + i * p_.tile());
  }
  // As the product that this replaces: FLOPs do not depend on the data.
  done_.multiply_adds(rows_ * rows_ * m);
}

const real* ChunkedTile::read_weights(int64_t which) {
  real* const weights = work_ + at_.weights;
  pair_weights(false, which, weights);
  if (!p_.bonus) return weights;
  const int64_t m = p_.key_dim;
  const real* const k = keys_[0].rows;
  real* const row = work_ + at_.row;
  for (int64_t i = 0; i < rows_; ++i) {
    for (int64_t c = 0; c < m; ++c) row[c] = head_.bonus[c] * k[i * m + c];
    weights[i * p_.tile() + i] = row_dot(q_ + i * m, row, m);
  }
  done_.multiply_adds(rows_ * m);
  return weights;
}

const real* ChunkedTile::erased_values() {
  real* const weights = work_ + at_.weights;
  pair_weights(true, 0, weights);
  return weights;
}

void ChunkedTile::erase_weights(real* out) { pair_weights(true, p_.writes() - 1, out); }

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

void ChunkedTile::solve(const real* state, const real* erase, real* residual, real* solved) {
  const int64_t d = p_.dim, tile = p_.tile();
  multiply(rows_, d, p_.key_dim, {e_read_, p_.key_dim}, {state, d}, residual, d);
  for (int64_t n = 0; n < rows_ * d; ++n) residual[n] = (p_.delta ? v_[n] : real(0)) - residual[n];
  if (p_.removal) add_lower(erased_values(), v_, d, residual);
  const Mark mark(Part::recurrence);
  for (int64_t begin = 0; begin < rows_; begin += kBlock) {
    const int64_t end = std::min(rows_, begin + kBlock);
    if (begin > 0)
      multiply_add(end - begin, d, begin, {erase + begin * tile, tile}, {solved, d},
                   residual + begin * d, d);
    for (int64_t i = begin; i < end; ++i) {
      real* const row = residual + i * d;
      if (i > begin)
        multiply_add(1, d, i - begin, {erase + i * tile + begin, tile}, {solved + begin * d, d},
                     row, d);
      if (!p_.delta) continue;
      const real beta = head_.beta[first_ + i];
      for (int64_t c = 0; c < d; ++c) solved[i * d + c] = beta * row[c];
    }
  }
}

void ChunkedTile::outputs(const real* state, const real* solved, real* out) {
  multiply(rows_, p_.dim, p_.key_dim, {q_read_, p_.key_dim}, {state, p_.dim}, out, p_.dim);
  for (int64_t i = 0; i < p_.writes(); ++i)
    add_lower(read_weights(i), values(i, solved), p_.dim, out);
  multiply_all(rows_ * p_.dim, p_.scale, out);
}

void ChunkedTile::advance(const real* solved, const real* before, real* after) {
  for (int64_t i = 0; i < p_.writes(); ++i) {
    add_product_to(p_.key_dim, p_.dim, rows_, {keys_[i].write, 1, p_.key_dim},
                   {values(i, solved), p_.dim}, i == 0 ? before : after, after, p_.dim,
                   i == 0 ? total() : nullptr);
    done_.multiply_adds(p_.key_dim * p_.dim * rows_);
  }
}

}  // namespace attn
