// See tile_gradient.h for the equations.
#include "variants/chunked/tile_gradient.h"

#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

constexpr int64_t kBlock = 16;  // rows of back substitution that are solved one by one

void add_to(real* to, const real* from, int64_t count) {
  const Mark mark(Part::elementwise);
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

TileGradient::Layout::Layout(const ChunkedProblem& p, WorkspaceParts& parts) : tile(p, parts) {
  const int64_t rows = p.tile(), keys = rows * p.key_dim;
  state_panel = parts.take(packed_reals(p.key_dim, p.dim));
  grad_panel = parts.take(packed_reals(p.key_dim, p.dim));
  written_panel = parts.take(packed_reals(rows, p.dim));
  grad_written = parts.take(rows * p.dim);
  grad_weights = parts.take(rows * rows);
  grad_erase = parts.take(p.delta ? rows * rows : 0);
  grad_q = parts.take(keys);
  grad_k = parts.take(keys);
  grad_k_read = parts.take(p.delta ? keys : 0);
  grad_k_pair = parts.take(p.decay == Decay::channel ? keys : 0);
  grad_sums = parts.take(rows * p.decays());
  dots = parts.take(rows);
}

void TileGradient::add(const Forward& forward, const real* grad_out, real* grad_state) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  real* const grad_written = part(parts_.grad_written);
  grad_out += first_ * d;
  multiply(n, d, m, {k_write_, m}, {grad_state, d}, grad_written, d);
  add_lower_transposed(read_weights(), grad_out, d, grad_written);
  if (p_.delta) back_substitute(forward);
  if (to_.v) add_to(to_.v + first_ * d, grad_written, n * d);
  if (p_.delta)
    for (int64_t i = 0; i < n * d; ++i) grad_written[i] = -grad_written[i];

  real *const grad_q = part(parts_.grad_q), *const grad_k = part(parts_.grad_k),
              *const grad_k_read = part(parts_.grad_k_read);
  pack_transposed(forward.state, m, d, d, part(parts_.state_panel));
  pack_transposed(grad_state, m, d, d, part(parts_.grad_panel));
  multiply(n, m, d, {grad_out, d}, packed(part(parts_.state_panel), d), grad_q, m);
  multiply(n, m, d, {forward.written, d}, packed(part(parts_.grad_panel), d), grad_k, m);
  if (p_.delta)
    multiply(n, m, d, {grad_written, d}, packed(part(parts_.state_panel), d), grad_k_read, m);
  pairs(grad_out, forward);
  if (to_.log_decay) decays(forward, grad_state);
  if (p_.bonus) add_bonus(grad_out, forward.written);
  if (to_.q) add_to(to_.q + first_ * m, grad_q, n * m);
  if (to_.k) add_to(to_.k + first_ * m, grad_k, n * m);
  if (to_.k && p_.delta) add_to(to_.k + first_ * m, grad_k_read, n * m);

  multiply_add(m, d, n, {q_read_, 1, m}, {grad_out, d}, grad_state, d, total());
  if (p_.delta) multiply_add(m, d, n, {k_read_, 1, m}, {grad_written, d}, grad_state, d);
}

// dU becomes W and then dY, from the last row to the first.
void TileGradient::back_substitute(const Forward& forward) {
  const int64_t d = p_.dim, tile = p_.tile();
  real* const rows = part(parts_.grad_written);
  const real* const erase = forward.erase;
  const Mark mark(Part::recurrence);
  for (int64_t begin = (rows_ - 1) / kBlock * kBlock; begin >= 0; begin -= kBlock) {
    const int64_t end = std::min(rows_, begin + kBlock);
    if (end < rows_)
      multiply_add(end - begin, d, rows_ - end, {erase + end * tile + begin, 1, tile},
                   {rows + end * d, d}, rows + begin * d, d);
    for (int64_t i = end - 1; i >= begin; --i) {
      real* const row = rows + i * d;
      if (i + 1 < end)
        multiply_add(1, d, end - i - 1, {erase + (i + 1) * tile + i, 1, tile},
                     {rows + (i + 1) * d, d}, row, d);
      if (to_.beta) to_.beta[first_ + i] += row_dot(forward.residual + i * d, row, d);
      const real beta = head_.beta[first_ + i];
      for (int64_t c = 0; c < d; ++c) row[c] *= beta;
    }
  }
}

// The gradients of pairs, and through the decays those of q and k: grad_q of rows as queries of P,
// grad_k_read as queries of A, grad_k as keys.
void TileGradient::pairs(const real* grad_out, const Forward& forward) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  real *const of_read = part(parts_.grad_weights), *const of_erase = part(parts_.grad_erase);
  real *const grad_q = part(parts_.grad_q), *const grad_k = part(parts_.grad_k),
              *const grad_k_read = part(parts_.grad_k_read);
  real* const panel = part(parts_.written_panel);
  pack_transposed(forward.written, n, d, d, panel);
  products_of_rows(grad_out, packed(panel, d), d, of_read);
  mask(p_.bonus, 1, of_read);
  if (p_.delta) {
    products_of_rows(part(parts_.grad_written), packed(panel, d), d, of_erase);
    mask(true, 1, of_erase);
  }
  const auto scale_all = [&](bool queries) {  // through read and write
    if (p_.decay == Decay::none) return;
    if (!queries) return decay_.scale(grad_k, decay_.write(), grad_k);
    decay_.scale(grad_q, decay_.read(), grad_q);
    if (p_.delta) decay_.scale(grad_k_read, decay_.read(), grad_k_read);
  };
  const bool factored = decay_.of_channels() && decay_.factored();
  scale_all(false);
  if (to_.log_decay) {  // what the exponent of `write` gets from G_last
    real* const last = part(parts_.grad_sums) + (n - 1) * p_.decays();
    std::fill_n(last, p_.decays(), real(0));
    for (int64_t j = 0; j < n; ++j)
      if (decay_.of_channels())
        for (int64_t c = 0; c < m; ++c) last[c] += k_[j * m + c] * grad_k[j * m + c];
      else
        *last += row_dot(k_ + j * m, grad_k + j * m, m);
  }
  if (!factored) scale_all(true);
  if (one_by_one()) return pairs_one_by_one();
  add_lower(of_read, k_pair_, m, grad_q);
  if (p_.delta) add_lower(of_erase, k_pair_, m, grad_k_read);
  if (factored) scale_all(true);
  real* const of_keys = factored ? part(parts_.grad_k_pair) : grad_k;
  if (factored) std::fill_n(of_keys, n * m, real(0));
  add_lower_transposed(of_read, q_pair_, m, of_keys);
  if (p_.delta) add_lower_transposed(of_erase, k_query_, m, of_keys);
  if (!factored) return;
  decay_.scale(of_keys, decay_.inverse(), of_keys);
  add_to(grad_k, of_keys, n * m);
}

void TileGradient::pairs_one_by_one() {
  const Mark mark(Part::scores);
  const int64_t m = p_.key_dim, tile = p_.tile();
  real *const grad_q = part(parts_.grad_q), *const grad_k = part(parts_.grad_k),
              *const grad_k_read = part(parts_.grad_k_read);
  for (int64_t i = 0; i < rows_; ++i) {
    const int64_t count = p_.bonus ? i : i + 1;
    const real *const decay = decay_.pair_row(i, count), *const q = q_ + i * m,
                      *const query = k_ + i * m;
    const real* const of_read = part(parts_.grad_weights) + i * tile;
    const real* const of_erase = part(parts_.grad_erase) + i * tile;
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < m; ++c) {
        const real by = decay[j * m + c], read = of_read[j] * by;
        grad_q[i * m + c] += read * k_[j * m + c];
        grad_k[j * m + c] += read * q[c];
        if (!p_.delta) continue;
        const real erase = of_erase[j] * by;
        grad_k_read[i * m + c] += erase * k_[j * m + c];
        grad_k[j * m + c] += erase * query[c];
      }
  }
  done_.multiply_adds((p_.delta ? 4 : 2) * rows_ * rows_ * m);  // as the products replaced
}

// grad_sums becomes the gradient of G_i, and its sums over the later rows that of the log-decays.
void TileGradient::decays(const Forward& forward, const real* grad_state) {
  const Mark mark(Part::elementwise);
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim, width = p_.decays();
  real* const sums = part(parts_.grad_sums);
  const auto add_product_of = [&](const real* x, const real* grad, real sign, real* to) {
    if (decay_.of_channels())
      for (int64_t c = 0; c < m; ++c) to[c] += sign * x[c] * grad[c];
    else
      *to += sign * row_dot(x, grad, m);
  };
  std::fill_n(sums, (n - 1) * width, real(0));  // the last row has G_last's
  for (int64_t i = 0; i < n; ++i) {
    real* const to = sums + i * width;
    const int64_t reader = p_.bonus ? i + 1 : i;  // the row whose H is G_i
    if (reader < n) add_product_of(q_ + reader * m, part(parts_.grad_q) + reader * m, 1, to);
    if (p_.delta) add_product_of(k_ + i * m, part(parts_.grad_k_read) + i * m, 1, to);
    add_product_of(k_ + i * m, part(parts_.grad_k) + i * m, -1, to);
  }
  real* const last = sums + (n - 1) * width;
  for (int64_t c = 0; c < m; ++c)
    last[width == 1 ? 0 : c] +=
        decay_.total()[c] * row_dot(forward.state + c * d, grad_state + c * d, d);
  const bool of_head = p_.decay == Decay::head;
  real* const to = to_.log_decay + (of_head ? 0 : first_ * width);
  for (int64_t i = n - 1; i >= 0; --i) {
    if (i + 1 < n) add_to(sums + i * width, sums + (i + 1) * width, width);
    add_to(to + (of_head ? 0 : i * width), sums + i * width, width);
  }
}

// The diagonal of P: Σ_c q_ic·u_c·k_ic.
void TileGradient::add_bonus(const real* grad_out, const real* written) {
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  real* const dots = part(parts_.dots);
  real *const grad_q = part(parts_.grad_q), *const grad_k = part(parts_.grad_k);
  dots_of_rows(n, d, grad_out, d, written, d, dots);
  done_.multiply_adds(n * (d + (to_.bonus ? 3 : 2) * m));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < m; ++c) {
      const int64_t at = i * m + c;
      grad_q[at] += dots[i] * head_.bonus[c] * k_[at];
      grad_k[at] += dots[i] * head_.bonus[c] * q_[at];
      if (to_.bonus) to_.bonus[c] += dots[i] * q_[at] * k_[at];
    }
}

void TileGradient::add_padding(int64_t length, const real* state, const real* grad_out,
                               real* grad_state) {
  const int64_t n = p_.len - length, m = p_.key_dim, d = p_.dim;
  const real* const q = head_.q + length * m;
  grad_out += length * d;
  if (to_.q) {
    real* const panel = part(parts_.state_panel);
    pack_transposed(state, m, d, d, panel);
    multiply_add(n, m, d, {grad_out, d}, packed(panel, d), to_.q + length * m, m);
  }
  multiply_add(m, d, n, {q, 1, m}, {grad_out, d}, grad_state, d);
}

}  // namespace attn
