// See mesa_decoder.h.
#include "variants/chunked/mesa_decoder.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/chunked/head_decoder.h"
#include "variants/chunked/key_rows.h"
#include "variants/chunked/mesa_solver.h"
#include "variants/chunked/state_decoder.h"

namespace attn {
namespace {

class MesaDecoder final : public HeadDecoder {
 public:
  MesaDecoder(const Shape& position, int64_t capacity, const Var& ridge, int64_t iterations)
      : HeadDecoder(position, capacity, {1, 1}),
        heads_(position[1]),
        iterations_(iterations),
        states_(Tensor::zeros({heads(), 2, head_dim(), head_dim()})),
        ridge_(ridge),
        work_(static_cast<size_t>(heads() * work_reals()) * sizeof(real), Purpose::workspace) {}

 private:
  // A query, a key, what is written at it, decays, λ, x, and what steps and the solver work on.
  int64_t work_reals() const {
    const int64_t dim = head_dim();
    return padded_reals(6 * dim + step_reals(dim, dim) + cg_reals(1, dim));
  }

  void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v, real* out,
               Tally& done) const override {
    const int64_t dim = head_dim();
    real* const work = static_cast<real*>(work_.data()) + head * work_reals();
    real *const query = work, *const key = work + dim, *const written = work + 2 * dim,
                *const decay = work + 3 * dim, *const lambda = work + 4 * dim,
                *const x = work + 5 * dim, *const rest = work + 6 * dim;
    const auto gate = [&](size_t g) {
      return 1 / (1 + std::exp(-gates()[g].data()[head * gates()[g].dim(2) + i]));
    };
    const real strength = gate(1);
    std::copy_n(k, dim, key);
    unit_row(1, nullptr, dim, key);
    std::fill_n(decay, dim, gate(0));
    real *const systems = states_.data() + head * 2 * dim * dim, *const sums = systems + dim * dim;
    StateStep step{.key_dim = dim, .dim = dim, .k = key, .v = written, .decay = decay};
    for (int64_t c = 0; c < dim; ++c) written[c] = strength * key[c];
    advance_state(step, systems, rest, done);
    for (int64_t c = 0; c < dim; ++c) written[c] = strength * v[c];
    advance_state(step, sums, rest, done);
    if (!q) return;
    std::copy_n(q, dim, query);
    unit_row(1, nullptr, dim, query);
    softplus_row(dim, ridge_.value().data() + head % heads_ * dim, 1, 1, lambda);
    for (int64_t c = 0; c < dim; ++c) lambda[c] += static_cast<real>(kLeastRidge);
    conjugate_gradients(
        1, dim, iterations_, query,
        [&](const real* p, real* to) {
          product(1, dim, dim, {p, dim}, {systems, dim}, to, dim);
          for (int64_t c = 0; c < dim; ++c) to[c] += lambda[c] * p[c];
          done.multiply_adds(dim * dim);
        },
        x, rest);
    product(1, dim, dim, {x, dim}, {sums, dim}, out, dim);
    done.multiply_adds(dim * dim);
  }

  int64_t step_work() const override { return iterations_ * head_dim() * head_dim(); }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * states_.size();
  }
  double do_step_flops() const override {
    return static_cast<double>((iterations_ + 3) * states_.size());
  }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  int64_t heads_;  // of one sequence
  int64_t iterations_;
  Tensor states_;  // H and R [heads, 2, d, d]
  Var ridge_;
  Block work_;
};

}  // namespace

std::unique_ptr<Decoder> mesa_decoder(const Shape& position, int64_t capacity, const Var& ridge,
                                      int64_t iterations) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<MesaDecoder>(position, capacity, ridge, iterations);
}

}  // namespace attn
