// See causal_packing.h. Sums over positions are states of linear attention without decay: of keys
// and weights [dim, latents], then of weights and values [latents, dim].
#include "variants/lowrank/causal_packing.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/memory.h"
#include "core/ops/ops.h"
#include "core/simd/product.h"
#include "variants/chunked/chunked.h"

namespace attn {
namespace {

// Of sums with softplus(x·ln 2) in the place of log2(1 + 2^x) = softplus(x·ln 2) / ln 2.
constexpr double kToBase2 = std::numbers::log2e;

double logit_scale(int64_t dim) { return 1 / std::sqrt(static_cast<double>(dim)); }

// 1/t of each query [batch, heads, len]; 1 where it sees no key.
Tensor shares(const Shape& q, const std::vector<int64_t>& lengths) {
  const Tensor all({q[0], q[1], q[2]});
  for (int64_t row = 0; row < all.size(); ++row) {
    const int64_t seen = row % q[2] + 1, b = row / (q[1] * q[2]);
    const int64_t valid = lengths.empty() ? q[2] : lengths[static_cast<size_t>(b)];
    all[row] = 1 / static_cast<real>(std::max<int64_t>(1, std::min(seen, valid)));
  }
  return all;
}

}  // namespace

Var causal_packing(const Var& q, const Var& k, const Var& v, const Var& rows,
                   const std::vector<int64_t>& lengths) {
  const double to_logits = logit_scale(q.dim(3));
  const Var share(shares(q.shape(), lengths)), keys = zero_padding(k, lengths);
  Var weights = matmul(keys, scale(rows, to_logits * std::numbers::ln2), false, true);
  weights = softplus(weights);  // [batch, heads, len, latents]; an op at a time: two are alive
  Var answers = chunked_attention({.q = q, .k = keys, .v = weights},
                                  {.kv_lengths = lengths, .scale = to_logits * kToBase2});
  answers = scale_rows(answers, share);
  answers = softmax(answers);
  answers = scale_rows(answers, share);
  return chunked_attention({.q = answers, .k = weights, .v = v},
                           {.kv_lengths = lengths, .scale = kToBase2});
}

Cost causal_packing_cost(const AttentionShape& s, int64_t latents) {
  const auto problem = [&](int64_t key_dim, int64_t dim) {
    return ChunkedProblem{
        .batch = s.batch, .heads = s.heads, .len = s.kv_len, .key_dim = key_dim, .dim = dim};
  };
  const Cost pack = chunked_cost(problem(s.head_dim, latents)),
             unpack = chunked_cost(problem(latents, s.head_dim));
  const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len),
             dim = static_cast<double>(s.head_dim), slots = static_cast<double>(latents);
  const double weigh = 2 * rows * slots * dim, row_bytes = sizeof(real) * rows;
  Cost cost;
  cost.flops = weigh + pack.flops + unpack.flops;
  cost.backward_flops = 2 * weigh + pack.backward_flops + unpack.backward_flops;
  cost.bytes = pack.bytes + unpack.bytes + row_bytes * (dim + 9 * slots + 3);
  cost.peak_bytes =
      row_bytes + std::max({3 * row_bytes * slots, row_bytes * slots + pack.peak_bytes,
                            2 * row_bytes * slots + unpack.peak_bytes});
  cost.state_bytes = pack.state_bytes + unpack.state_bytes;
  return cost;
}

namespace {

class PackingDecoder final : public HeadDecoder {
 public:
  PackingDecoder(const Shape& position, int64_t capacity, const Var& rows)
      : HeadDecoder(position, capacity),
        heads_(position[1]),
        latents_(rows.dim(1)),
        rows_(rows),
        states_(Tensor::zeros({heads(), 2, latents_, head_dim()})),
        work_(static_cast<size_t>(heads() * work_reals()) * sizeof(real), Purpose::workspace) {}

 private:
  // The weights and answers of the packed rows, a query, and what a step works on.
  int64_t work_reals() const {
    return padded_reals(2 * latents_ + head_dim() + step_reals(latents_, head_dim()));
  }

  void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v, real* out,
               Tally& done) const override {
    const int64_t dim = head_dim(), m = latents_;
    real* const work = static_cast<real*>(work_.data()) + head * work_reals();
    real *const weights = work, *const answers = work + m, *const query = work + 2 * m,
                *const rest = work + 2 * m + dim;
    real *const keys = states_.data() + head * 2 * m * dim, *const values = keys + m * dim;
    const auto factor = static_cast<real>(logit_scale(dim));
    const real share = 1 / static_cast<real>(appended() + i + 1);
    product(m, 1, dim, {rows_.value().data() + head % heads_ * m * dim, dim}, {k, 1}, weights, 1);
    done.multiply_adds(m * dim);
    done.moved<real>(m * dim);
    for (int64_t c = 0; c < m; ++c)  // log2(1 + 2^x), without overflow
      weights[c] =
          std::max(real(0), factor * weights[c]) +
          static_cast<real>(kToBase2) * std::log1p(std::exp2(-std::abs(factor * weights[c])));
    for (int64_t c = 0; q && c < dim; ++c) query[c] = factor * share * q[c];
    advance_state(
        {.key_dim = dim, .dim = m, .q = q ? query : nullptr, .k = k, .v = weights, .out = answers},
        keys, rest, done);
    if (q) {
      const real most = *std::max_element(answers, answers + m);
      real total = 0;
      for (int64_t c = 0; c < m; ++c) total += answers[c] = std::exp(answers[c] - most);
      for (int64_t c = 0; c < m; ++c) answers[c] *= share / total;
    }
    advance_state(
        {.key_dim = m, .dim = dim, .q = q ? answers : nullptr, .k = weights, .v = v, .out = out},
        values, rest, done);
  }

  int64_t step_work() const override { return 5 * latents_ * head_dim(); }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * states_.size();
  }
  double do_step_flops() const override { return 5 * static_cast<double>(states_.size()); }
  double do_step_bytes() const override {
    return 2.5 * static_cast<double>(do_state_bytes());  // and the rows, which are half a state
  }

  int64_t heads_, latents_;  // heads of one sequence
  Var rows_;
  Tensor states_;  // [heads, 2, latents·dim]: of keys [dim, latents], of values [latents, dim]
  Block work_;
};

}  // namespace

std::unique_ptr<Decoder> causal_packing_decoder(const Shape& position, int64_t capacity,
                                                const Var& rows) {
  if (position[2] > 1) return nullptr;
  return std::make_unique<PackingDecoder>(position, capacity, rows);
}

}  // namespace attn
