// See tile_gradient.h for the equations.
#include "variants/chunked/tile_gradient.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

constexpr int64_t kGradientBlock = 16;  // rows of back substitution that are solved one by one

}  // namespace

TileGradient::Layout::Layout(const ChunkedProblem& p, WorkspaceParts& parts) {
  const int64_t rows = p.tile(), keys = rows * p.key_dim;
  grad_out = parts.take(p.scale == 1 ? 0 : rows * p.dim);
  state_panel = parts.take(packed_reals(p.key_dim, p.dim));
  grad_panel = parts.take(packed_reals(p.key_dim, p.dim));
  written_panel = parts.take(packed_reals(rows, p.dim));
  grad_written = parts.take(rows * p.dim);
  grad_v = p.removal ? parts.take(rows * p.dim) : grad_written;
  grad_weights = parts.take(rows * rows);
  grad_erase = parts.take(p.solves() ? rows * rows : 0);
  grad_q = parts.take(keys);
  for (int64_t i = 0; i < p.writes(); ++i) grad_k[i] = parts.take(keys);
  grad_e = parts.take(p.solves() ? keys : 0);
  grad_sums = parts.take(p.decays());
  grad_logs = parts.take(rows * p.decays());
  slopes = parts.take(p.rule.of == LogDecay::Of::given ? 0 : rows * p.decays());
  dots = parts.take(std::max(rows, p.key_dim));
}

const real* TileGradient::scaled(const real* grad_out, int64_t rows) const {
  if (p_.scale == 1) return grad_out;
  real* const to = part(parts_.grad_out);
  std::copy_n(grad_out, rows * p_.dim, to);
  multiply_all(rows * p_.dim, p_.scale, to);
  return to;
}

void TileGradient::add(const Forward& forward, const real* grad_out, real* grad_state) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  grad_out = scaled(grad_out + first_ * d, n);
  written(forward, grad_out, grad_state);
  if (to_.v) add_row(to_.v + first_ * d, part(parts_.grad_v), n * d);
  real* const grad_written = part(parts_.grad_written);
  if (p_.solves())
    for (int64_t i = 0; i < n * d; ++i) grad_written[i] = -grad_written[i];
  states(forward, grad_out, grad_state);
  if (of_decays()) last_sums(forward, grad_state);
  if (decay_.of_channels()) {
    scale_channels();
    pairs(grad_out, forward);
    add_channels();
  } else {
    if (p_.decay != Decay::none) scale_rows();
    pairs(grad_out, forward);
    add_rows();
  }
  if (of_decays()) add_decays();
  if (p_.bonus) add_bonus(grad_out);

  multiply_add(m, d, n, {q_read_, 1, m}, {grad_out, d}, grad_state, d, total());
  if (p_.solves()) multiply_add(m, d, n, {e_read_, 1, m}, {grad_written, d}, grad_state, d);
}

void TileGradient::prefetch_before(int64_t rows, const real* grad_out) const {
  const int64_t first = first_ - rows, m = p_.key_dim, d = p_.dim;
  prefetch_queries(first, rows_);
  prefetch_keys(first, rows_);
  prefetch_rows(grad_out, first, rows_, d);
  prefetch_rows(to_.v, first, rows_, d);
  for (const real* const to : {to_.q, to_.k, to_.erase, to_.remove})
    prefetch_rows(to, first, rows_, m);
  if (p_.decay != Decay::head) prefetch_rows(to_.log_decay, first, rows_, p_.decays());
}

// dV, and where something is solved dY or Z in grad_written.
void TileGradient::written(const Forward& forward, const real* grad_out, const real* grad_state) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  for (int64_t i = 0; i < p_.writes(); ++i) {
    real* const to = part(i == 0 ? parts_.grad_v : parts_.grad_written);
    multiply(n, d, m, {keys_[i].write, m}, {grad_state, d}, to, d);
    add_lower_transposed(read_weights(i), grad_out, d, to);
  }
  if (p_.solves()) back_substitute(forward);
  if (p_.removal)
    add_lower_transposed(erased_values(), part(parts_.grad_written), d, part(parts_.grad_v));
}

// What the gradients of queries and keys get through the states; grad_written is negated.
void TileGradient::states(const Forward& forward, const real* grad_out, const real* grad_state) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  const Right before = transposed(forward.state, m, d, part(parts_.state_panel)),
              after = transposed(grad_state, m, d, part(parts_.grad_panel));
  multiply(n, m, d, {grad_out, d}, before, part(parts_.grad_q), m);
  for (int64_t i = 0; i < p_.writes(); ++i)
    multiply(n, m, d, {values(i, forward.solved), d}, after, part(parts_.grad_k[i]), m);
  if (p_.solves())
    multiply(n, m, d, {part(parts_.grad_written), d}, before, part(parts_.grad_e), m);
}

// dU becomes W and then dY, or with a removal Z, from the last row to the first.
void TileGradient::back_substitute(const Forward& forward) {
  const int64_t d = p_.dim, tile = p_.tile();
  real* const rows = part(parts_.grad_written);
  const real* const erase = forward.erase;
  const Mark mark(Part::recurrence);
  for (int64_t begin = (rows_ - 1) / kGradientBlock * kGradientBlock; begin >= 0;
       begin -= kGradientBlock) {
    const int64_t end = std::min(rows_, begin + kGradientBlock);
    if (end < rows_)
      multiply_add(end - begin, d, rows_ - end, {erase + end * tile + begin, 1, tile},
                   {rows + end * d, d}, rows + begin * d, d);
    for (int64_t i = end - 1; i >= begin; --i) {
      real* const row = rows + i * d;
      if (i + 1 < end)
        multiply_add(1, d, end - i - 1, {erase + (i + 1) * tile + i, 1, tile},
                     {rows + (i + 1) * d, d}, row, d);
      if (!p_.delta) continue;
      if (to_.beta) to_.beta[first_ + i] += row_dot(forward.residual + i * d, row, d);
      const real beta = head_.beta[first_ + i];
      for (int64_t c = 0; c < d; ++c) row[c] *= beta;
    }
  }
}

// The gradients of pairs: grad_q of rows as queries of P, grad_e as queries of A, grad_k as keys.
void TileGradient::pairs(const real* grad_out, const Forward& forward) {
  for (int64_t i = 0; i < p_.writes(); ++i) pairs_of(i, grad_out, values(i, forward.solved));
}

void TileGradient::pairs_of(int64_t which, const real* grad_out, const real* values) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  real *const of_read = part(parts_.grad_weights), *const of_erase = part(parts_.grad_erase);
  real *const grad_q = part(parts_.grad_q), *const grad_k = part(parts_.grad_k[which]),
              *const grad_e = part(parts_.grad_e), *const panel = part(parts_.written_panel);
  const Right written = transposed(values, n, d, panel);
  products_of_rows(grad_out, written, d, of_read);
  mask(p_.bonus, 1, of_read);
  if (p_.solves()) {
    products_of_rows(part(parts_.grad_written), written, d, of_erase);
    mask(true, 1, of_erase);
  }
  if (one_by_one()) {
    pairs_one_by_one(false, which);
    if (p_.solves()) pairs_one_by_one(true, which);
    return;
  }
  const real* const keys = keys_[which].pair;
  add_lower(of_read, keys, m, grad_q);
  if (p_.solves()) add_lower(of_erase, keys, m, grad_e);
  add_lower_transposed(of_read, q_pair_, m, grad_k);
  if (p_.solves()) add_lower_transposed(of_erase, e_pair_, m, grad_k);
}

// Of P, or of A if `erase`.
void TileGradient::pairs_one_by_one(bool erase, int64_t which) {
  const Mark mark(Part::scores);
  const int64_t m = p_.key_dim;
  const real *const keys = keys_[which].rows, *const queries = erase ? e_ : q_;
  real *const grad_queries = part(erase ? parts_.grad_e : parts_.grad_q), *const grad_k = part(
                                                                              parts_.grad_k[which]);
  for (int64_t i = 0; i < rows_; ++i) {
    const int64_t count = erase || p_.bonus ? i : i + 1;
    const real *const decay = decay_.pair_row(i, count, erase), *const query = queries + i * m;
    const real* const weights =
        part(erase ? parts_.grad_erase : parts_.grad_weights) + i * p_.tile();
    real* const grad_query = grad_queries + i * m;
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < m; ++c) {
        const real by = weights[j] * decay[j * m + c];
        grad_query[c] += by * keys[j * m + c];
        grad_k[j * m + c] += by * query[c];
      }
  }
  done_.multiply_adds(2 * rows_ * rows_ * m);  // as the products replaced
}

// The diagonal of P: Σ_c q_ic·u_c·k_ic.
void TileGradient::add_bonus(const real* grad_out) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  const real *const k = keys_[0].rows, *const bonus = head_.bonus;
  real* const dots = part(parts_.dots);
  dots_of_rows(n, d, grad_out, d, v_, d, dots);
  done_.multiply_adds(n * (d + (to_.bonus ? 3 : 2) * m));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = i * m, to = first_ * m + at;
    for (int64_t c = 0; to_.q && c < m; ++c) to_.q[to + c] += dots[i] * bonus[c] * k[at + c];
    for (int64_t c = 0; to_.k && c < m; ++c) to_.k[to + c] += dots[i] * bonus[c] * q_[at + c];
    for (int64_t c = 0; to_.bonus && c < m; ++c) to_.bonus[c] += dots[i] * q_[at + c] * k[at + c];
  }
}

void TileGradient::add_padding(int64_t length, const real* state, const real* grad_out,
                               real* grad_state) {
  const int64_t m = p_.key_dim, d = p_.dim;
  real* const panel = part(parts_.state_panel);
  const Right before = to_.q ? transposed(state, m, d, panel) : Right();
  for (int64_t first = length; first < p_.len; first += p_.tile()) {
    const int64_t n = std::min(p_.tile(), p_.len - first);
    const real* const grad = scaled(grad_out + first * d, n);
    if (to_.q) multiply_add(n, m, d, {grad, d}, before, to_.q + first * m, m);
    multiply_add(m, d, n, {head_.q + first * m, 1, m}, {grad, d}, grad_state, d);
  }
}

}  // namespace attn
