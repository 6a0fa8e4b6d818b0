// Forward, backward and cost; see aft_attention.h. The gradients of keys and values are sums over
// queries with the same weights, so the kernel of the forward computes them, with the two sides of
// a pair exchanged.
#include "variants/synthetic/aft_attention.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/simd/rows.h"
#include "variants/synthetic/aft_gradient.h"
#include "variants/synthetic/exponential_sums.h"

namespace attn {
namespace {

ExponentialPairs pairs_of(int64_t batch, int64_t heads, int64_t len, int64_t dim, bool causal,
                          const AftBiases& biases) {
  ExponentialPairs p{.batch = batch, .heads = heads, .len = len, .dim = dim};
  p.rank = biases.rank(), p.biased = biases.any();
  p.window = biases.window > 0 ? std::min(biases.window, len) : len;
  p.sees = causal ? ExponentialPairs::Sees::past : ExponentialPairs::Sees::all;
  return p;
}

// The same pairs from the side of the keys.
ExponentialPairs turned(ExponentialPairs p) {
  if (p.sees == ExponentialPairs::Sees::past) p.sees = ExponentialPairs::Sees::future;
  p.lengths.clear();
  return p;
}

struct AftProblem {
  ExponentialPairs pairs;
  Tensor q, k, v, left, right, distance;

  Biases biases() const {
    if (distance.defined()) return biases_of(pairs, distance);
    return pairs.rank ? biases_of(pairs, left, right) : Biases{};
  }
};

// What the backward needs of a query: the mean, and with what each weight e^(k + w) is multiplied,
// e^exponent·inverse.
struct Saved {
  Tensor mean, exponent, inverse;
};

void forward(const AftProblem& x, const Saved& saved, const Tensor& out) {
  const int64_t dim = x.pairs.dim;
  const auto finish = [&](const TargetSums& s, real* gate) {
    const Mark mark(Part::elementwise);
    for (int64_t r = 0; r < s.count; ++r) {
      const int64_t at = (s.head * x.pairs.len + s.first + r) * dim;
      const real *const sum = s.sums + r * 2 * dim, *const total = sum + dim;
      sigmoid_row(dim, x.q.data() + at, gate);
      for (int64_t c = 0; c < dim; ++c) {
        const bool some = total[c] > 0;
        const real inverse = some ? 1 / total[c] : real(0), mean = inverse * sum[c];
        out[at + c] = gate[c] * mean;
        if (!saved.mean.defined()) continue;
        saved.mean[at + c] = mean, saved.inverse[at + c] = inverse;
        saved.exponent[at + c] = some ? -s.top[r * dim + c] : real(0);
      }
    }
  };
  exponential_sums(x.pairs, x.biases(), {x.k.data(), x.v.data()}, finish);
}

void backward(const AftProblem& x, const Saved& saved, const Tensor& grad,
              std::span<Tensor> grads) {
  const int64_t dim = x.pairs.dim;
  // Of the sums of a query: of the weighted values, and of the weights.
  const Tensor of_sum(x.q.shape()), of_total(x.q.shape());
  over_range(x.q.size() / dim, dim, [&](int64_t begin, int64_t end) {
    sigmoid_row((end - begin) * dim, x.q.data() + begin * dim, of_sum.data() + begin * dim);
    for (int64_t i = begin * dim; i < end * dim; ++i) {
      const real gate = of_sum[i];
      if (grads[0].defined()) grads[0][i] += grad[i] * saved.mean[i] * gate * (1 - gate);
      of_sum[i] = grad[i] * gate * saved.inverse[i];
      of_total[i] = of_sum[i] * saved.mean[i];
    }
  });
  const SourceRows queries{saved.exponent.data(), of_sum.data(), of_total.data()};
  const Biases biases = x.biases();
  Biases swapped = biases;
  std::swap(swapped.left, swapped.right), swapped.sign = -1;
  const auto finish = [&](const TargetSums& s, real* factor) {
    const Mark mark(Part::elementwise);
    const int64_t valid = x.pairs.valid(s.head / x.pairs.heads);
    for (int64_t r = 0; r < s.count && s.first + r < valid; ++r) {
      const int64_t at = (s.head * x.pairs.len + s.first + r) * dim;
      const real *const sum = s.sums + r * 2 * dim, *const total = sum + dim;
      for (int64_t c = 0; c < dim; ++c) factor[c] = x.k[at + c] + s.top[r * dim + c];
      exp_row(dim, factor, 1, 0, factor);
      for (int64_t c = 0; c < dim; ++c) {
        if (grads[1].defined()) grads[1][at + c] += factor[c] * (x.v[at + c] * sum[c] - total[c]);
        if (grads[2].defined()) grads[2][at + c] += factor[c] * sum[c];
      }
    }
  };
  exponential_sums(turned(x.pairs), swapped, queries, finish);
  if (!x.pairs.biased || (!grads[3].defined() && !grads.back().defined())) return;
  const bool factors = x.pairs.rank > 0;
  const Tensor right = Tensor::zeros((factors ? x.right : x.distance).shape());
  Tensor left;
  if (factors) left = Tensor::zeros(x.left.shape());
  add_bias_gradient(x.pairs, biases, {x.k.data(), x.v.data()}, queries,
                    factors ? left.data() : nullptr, right.data());
  if (factors && grads[3].defined()) grads[3].add(left);
  if (grads.back().defined()) grads.back().add(right);
}

}  // namespace

Var aft_attention(const Var& q, const Var& k, const Var& v, const AftBiases& biases,
                  const Mask& mask) {
  ATTN_CHECK(q.shape() == k.shape() && v.shape() == k.shape() && !mask.edges,
             "q {}, k {} and v {} do not fit", q.shape().str(), k.shape().str(), v.shape().str());
  AftProblem x{pairs_of(q.dim(0), q.dim(1), q.dim(2), q.dim(3), mask.causal, biases),
               q.value(),
               k.value(),
               v.value(),
               {},
               {},
               {}};
  x.pairs.lengths = mask.kv_lengths;
  if (x.pairs.rank) x.left = biases.left.value(), x.right = biases.right.value();
  if (biases.distance.defined()) x.distance = biases.distance.value();
  Saved saved;
  const bool keep = recording({q, k, v}) ||
                    (x.pairs.rank && recording({biases.left, biases.right})) ||
                    (x.distance.defined() && recording({biases.distance}));
  if (keep) saved = {Tensor(q.shape()), Tensor(q.shape()), Tensor(q.shape())};
  const Tensor out(q.shape());
  forward(x, saved, out);
  count_bytes(sizeof(real) * static_cast<double>(4 * out.size()));
  if (!keep) return Var(out);
  const auto back = [x, saved](const Tensor& grad, std::span<Tensor> grads) {
    backward(x, saved, grad, grads);
  };
  if (x.distance.defined()) return custom_op(out, {q, k, v, biases.distance}, back);
  if (!x.pairs.rank) return custom_op(out, {q, k, v}, back);
  return custom_op(out, {q, k, v, biases.left, biases.right}, back);
}

Cost aft_cost(const AttentionShape& s, const AftBiases& biases) {
  const ExponentialPairs p = pairs_of(s.batch, s.heads, s.kv_len, s.head_dim, s.causal, biases);
  const auto size = static_cast<double>(p.all_heads() * p.len * p.dim);
  const auto weights = static_cast<double>(
      biases.distance.defined() ? biases.distance.value().size() : 2 * p.len * p.rank);
  Cost cost;
  cost.flops = exponential_sums_flops(p);
  cost.backward_flops = exponential_sums_flops(turned(p)) + (p.biased ? bias_gradient_flops(p) : 0);
  cost.bytes = sizeof(real) * (4 * size + weights);
  cost.peak_bytes = sizeof(real) * size + static_cast<double>(exponential_sums_bytes(p));
  const int64_t cached = biases.window > 0 ? std::min(biases.window + 1, p.len) : p.len;
  const bool sums = !p.biased || biases.window > 0;
  cost.state_bytes =
      sizeof(real) *
      static_cast<double>(p.all_heads() * p.dim * ((sums ? 3 : 0) + (p.biased ? 2 * cached : 0)));
  return cost;
}

}  // namespace attn
