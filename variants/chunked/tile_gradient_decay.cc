// Of tile_gradient.h, what decays take part in: from the gradients of factors to those of queries,
// keys and log-decays. A few passes over the rows of a tile.
#include <algorithm>

#include "core/base/marks.h"
#include "core/simd/rows.h"
#include "variants/chunked/tile_gradient.h"

namespace attn {

// What G_last gets through the state, and through the exponents of written keys.
void TileGradient::last_sums(const Forward& forward, const real* grad_state) {
  const Mark mark(Part::elementwise);
  const int64_t n = rows_, m = p_.key_dim, d = p_.dim;
  real* const dots = part(parts_.dots);
  dots_of_rows(m, d, forward.state, d, grad_state, d, dots);
  for (int64_t c = 0; c < m; ++c) dots[c] *= decay_.total()[c];
  real* const last = part(parts_.grad_sums);
  if (!decay_.of_channels()) *last = sum_in_row(dots, m);
  for (int64_t w = 0; w < p_.writes(); ++w) {
    const real *const keys = keys_[w].write, *const grad = part(parts_.grad_k[w]);
    if (!decay_.of_channels()) {
      *last += row_dot(keys, grad, n * m);
      continue;
    }
    for (int64_t j = 0; j < n; ++j) {
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < m; ++c) dots[c] += keys[j * m + c] * grad[j * m + c];
    }
  }
  if (decay_.of_channels()) std::copy_n(dots, m, last);
}

// From the gradients of the factors that meet states to those of queries and keys.
void TileGradient::scale_rows() {
  for (int64_t w = 0; w < p_.writes(); ++w)
    decay_.scale(part(parts_.grad_k[w]), decay_.write(), part(parts_.grad_k[w]));
  decay_.scale(part(parts_.grad_q), decay_.read(), part(parts_.grad_q));
  if (p_.solves()) decay_.scale(part(parts_.grad_e), decay_.read(), part(parts_.grad_e));
}

// The same; where factored, to those of the factors of pairs.
void TileGradient::scale_channels() {
  const Mark mark(Part::elementwise);
  const int64_t n = rows_, m = p_.key_dim;
  const auto scale = [n, m](real* x, const real* by, int64_t step) {
    for (int64_t i = 0; by && i < n; ++i, x += m, by += step) {
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < m; ++c) x[c] *= by[c];
    }
  };
  const bool factored = decay_.factored();
  for (int64_t w = 0; w < p_.writes(); ++w)
    scale(part(parts_.grad_k[w]), factored ? decay_.tail() : decay_.of_keys(), factored ? 0 : m);
  scale(part(parts_.grad_q), factored ? decay_.lead() : decay_.of_queries(), factored ? 0 : m);
  if (p_.solves())
    scale(part(parts_.grad_e), factored ? decay_.lead() : decay_.of_erasers(), factored ? 0 : m);
}

// Adds the gradients of queries and keys, and of one log-decay for all channels: the exponents'
// gradients are the products of rows with their own gradients, summed over the later rows.
void TileGradient::add_rows() {
  const Mark mark(Part::elementwise);
  const int64_t n = rows_, m = p_.key_dim, at = first_ * m;
  const real *const grad_q = part(parts_.grad_q), *const grad_e = part(parts_.grad_e),
                    *const grad_k = part(parts_.grad_k[0]);
  if (of_decays()) {
    real sum = *part(parts_.grad_sums);
    for (int64_t i = n - 1; i >= 0; --i) {
      const real of_query = row_dot(q_ + i * m, grad_q + i * m, m);
      if (!p_.bonus) sum += of_query;
      if (p_.solves()) sum += row_dot(e_ + i * m, grad_e + i * m, m);
      sum -= row_dot(keys_[0].rows + i * m, grad_k + i * m, m);
      part(parts_.grad_logs)[i] = sum;
      if (p_.bonus) sum += of_query;  // of G_{i-1}
    }
  }
  if (to_.q) add_row(to_.q + at, grad_q, n * m);
  if (to_.k) add_row(to_.k + at, grad_k, n * m);
  if (to_.k && p_.delta) add_row(to_.k + at, grad_e, n * m);
  if (to_.erase) add_row(to_.erase + at, grad_e, n * m);
  if (to_.remove) add_row(to_.remove + at, part(parts_.grad_k[1]), n * m);
}

// The same with a log-decay for each channel.
void TileGradient::add_channels() {
  const Mark mark(Part::elementwise);
  const int64_t n = rows_, m = p_.key_dim;
  real* const sums = part(parts_.grad_sums);
  if (!of_decays()) std::fill_n(sums, m, real(0));
  // sums += sign·x⊙grad⊙by; to += grad⊙by. A null `by` is 1.
  const auto add = [&](int64_t i, real sign, const real* x, const real* grad, const real* by,
                       real* to) {
    x += i * m, grad += i * m, by = decay_.factored() ? by + i * m : nullptr;
    if (to) to += (first_ + i) * m;
    ATTN_INDEPENDENT
    for (int64_t c = 0; c < m; ++c) {
      const real own = by ? grad[c] * by[c] : grad[c];
      sums[c] += sign * x[c] * own;
      if (to) to[c] += own;
    }
  };
  const auto add_query = [&](int64_t i) {
    add(i, 1, q_, part(parts_.grad_q), decay_.of_queries(), to_.q);
  };
  const auto add_eraser = [&](int64_t i) {
    add(i, 1, e_, part(parts_.grad_e), decay_.of_erasers(), p_.delta ? to_.k : to_.erase);
  };
  for (int64_t i = n - 1; i >= 0; --i) {
    if (!p_.bonus) add_query(i);
    if (p_.delta) add_eraser(i);
    for (int64_t w = 0; w < p_.writes(); ++w)
      add(i, -1, keys_[w].rows, part(parts_.grad_k[w]), decay_.of_keys(),
          w == 0 ? to_.k : to_.remove);
    if (of_decays()) std::copy_n(sums, m, part(parts_.grad_logs) + i * m);
    if (p_.bonus) add_query(i);  // of G_{i-1}
    if (p_.removal) add_eraser(i);
  }
}

// From the gradients of log-decays to those of what they are of.
void TileGradient::add_decays() {
  const Mark mark(Part::elementwise);
  const bool of_head = p_.decay == Decay::head;
  real* const logs = part(parts_.grad_logs);
  if (of_head) *logs = sum_in_row(logs, rows_);
  const int64_t count = of_head ? 1 : rows_ * p_.decays();
  if (to_.rate) *to_.rate += row_dot(logs, decay_.logs(), count);
  if (!to_.log_decay) return;
  real* const to = to_.log_decay + (of_head ? 0 : first_ * p_.decays());
  if (p_.rule.of == LogDecay::Of::given) return add_row(to, logs, count);
  real* const slopes = part(parts_.slopes);
  head_.decay_of.slopes(count, decay_rows(), slopes);
  ATTN_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) to[i] += logs[i] * slopes[i];
}

}  // namespace attn
