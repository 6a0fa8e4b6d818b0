// See state_decoder.h. A state is read and written once a step: 2·m·d numbers.
#include "variants/chunked/state_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/chunked/head_decoder.h"

namespace attn {

void advance_state(const StateStep& s, real* state, real* work, Tally& done) {
  const int64_t m = s.key_dim, d = s.dim;
  real *const row = work, *const residual = work + m;
  const real* written = s.v;
  const auto read = [&](const real* by, real* out, bool add) {
    if (add)
      add_product(1, d, m, {by, m}, {state, d}, out, d);
    else
      product(1, d, m, {by, m}, {state, d}, out, d);
    done.multiply_adds(m * d);
  };
  if (s.erase) read(s.erase, residual, false);
  if (s.beta) {
    for (int64_t c = 0; c < m; ++c) row[c] = s.decay ? s.decay[c] * s.k[c] : s.k[c];
    read(row, residual, false);
    for (int64_t c = 0; c < d; ++c) residual[c] = *s.beta * (s.v[c] - residual[c]);
    written = residual;
  }
  if (s.q && s.bonus) {
    real own = 0;
    for (int64_t c = 0; c < m; ++c) own += s.q[c] * s.bonus[c] * s.k[c];
    for (int64_t c = 0; c < d; ++c) s.out[c] = own * s.v[c];
    done.multiply_adds(2 * m + d);
    read(s.q, s.out, true);
  }
  add_product(m, d, 1, {s.k, 1}, {written, d}, state, d, s.decay);
  done.multiply_adds(m * d);
  if (s.erase) {
    for (int64_t c = 0; c < m; ++c) row[c] = -s.remove[c];
    add_product(m, d, 1, {row, 1}, {residual, d}, state, d);
    done.multiply_adds(m * d);
  }
  if (s.q && !s.bonus) read(s.q, s.out, false);
  done.moved<real>(2 * m * d);
}

namespace {

class StateDecoder final : public HeadDecoder {
 public:
  StateDecoder(const Shape& position, int64_t capacity, StateRule rule)
      : HeadDecoder(position, capacity, rule.gate_widths),
        heads_(position[1]),
        states_(Tensor::zeros({heads(), head_dim(), head_dim()})),
        rule_(std::move(rule)),
        work_(static_cast<size_t>(heads() * work_reals()) * sizeof(real), Purpose::workspace) {}

 private:
  // q, k, v, the decays and the removal of a head, β, and what a step works on.
  int64_t work_reals() const {
    return padded_reals(6 * head_dim() + 1 + step_reals(head_dim(), head_dim()));
  }

  void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v, real* out,
               Tally& done) const override {
    const int64_t dim = head_dim();
    real* const work = static_cast<real*>(work_.data()) + head * work_reals();
    StateRows rows{.at = appended() + i,
                   .head = head % heads_,
                   .q = q ? work : nullptr,
                   .k = work + dim,
                   .v = work + 2 * dim,
                   .decay = work + 3 * dim,
                   .beta = rule_.delta ? work + 6 * dim : nullptr,
                   .erase = rule_.removal ? work + 4 * dim : nullptr,
                   .remove = rule_.removal ? work + 5 * dim : nullptr};
    if (q) std::copy_n(q, dim, rows.q);
    std::copy_n(k, dim, rows.k), std::copy_n(v, dim, rows.v);
    std::fill_n(rows.decay, dim, real(1));
    for (size_t g = 0; g < gates().size(); ++g)
      rows.gates[g] = gates()[g].data() + (head * gates()[g].dim(2) + i) * gates()[g].dim(3);
    for (int64_t c = 0; q && c < dim; ++c) rows.q[c] *= static_cast<real>(rule_.scale);
    rule_.prepare(rows);
    advance_state({.key_dim = dim,
                   .dim = dim,
                   .q = rows.q,
                   .k = rows.k,
                   .v = rows.v,
                   .decay = rows.decay,
                   .beta = rows.beta,
                   .bonus = rule_.bonus.defined() ? rule_.bonus.data() + rows.head * dim : nullptr,
                   .erase = rows.erase,
                   .remove = rows.remove,
                   .out = out},
                  states_.data() + head * dim * dim, work + 6 * dim + 1, done);
  }

  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * states_.size();
  }
  double do_step_flops() const override {
    const double products = rule_.removal ? 8 : rule_.delta ? 6 : 4;
    const double own = rule_.bonus.defined() ? static_cast<double>(6 * heads() * head_dim()) : 0;
    return products * static_cast<double>(states_.size()) + own;
  }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  int64_t heads_;  // of one sequence
  Tensor states_;  // S [heads, m, d]
  StateRule rule_;
  Block work_;
};

}  // namespace

std::unique_ptr<Decoder> state_decoder(const Shape& position, int64_t capacity, StateRule rule) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<StateDecoder>(position, capacity, std::move(rule));
}

}  // namespace attn
