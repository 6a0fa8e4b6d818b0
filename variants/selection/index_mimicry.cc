// See index_mimicry.h. Scores are made by ops, the loss of each row with its gradient at once.
#include "variants/selection/index_mimicry.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

using RowNumbers = std::vector<double>;

// e^x over its sum, of the first `count`; returns the logarithm of the sum.
double normalise(RowNumbers& x, int64_t count) {
  const double most = *std::max_element(x.begin(), x.begin() + count);
  double total = 0;
  for (int64_t j = 0; j < count; ++j)
    total += x[static_cast<size_t>(j)] = std::exp(x[static_cast<size_t>(j)] - most);
  for (int64_t j = 0; j < count; ++j) x[static_cast<size_t>(j)] /= total;
  return most + std::log(total);
}

struct MimicryRows {
  Tensor q, k, scores;  // scores [batch, choices, len, len]
  std::vector<int64_t> lengths;
  bool causal;
  real weight = 1;   // of a row
  int64_t keys = 0;  // that a row chooses; 0: all that it sees

  int64_t len() const { return q.dim(2); }
  int64_t valid(int64_t b) const {
    return lengths.empty() ? len() : lengths[static_cast<size_t>(b)];
  }

  // The first `seen` keys or, where fewer are chosen, those of the largest scores, in order.
  std::vector<int64_t> chosen(const real* of, int64_t seen) const {
    std::vector<int64_t> all(static_cast<size_t>(seen));
    std::iota(all.begin(), all.end(), int64_t{0});
    if (keys == 0 || keys >= seen) return all;
    std::nth_element(all.begin(), all.begin() + keys, all.end(), [&](int64_t a, int64_t b) {
      return of[a] > of[b] || (of[a] == of[b] && a < b);
    });
    all.resize(static_cast<size_t>(keys));
    std::sort(all.begin(), all.end());
    return all;
  }

  // Of row i of a choice: its loss, and the gradient of its scores where `grad` is not null.
  double loss(int64_t choice, int64_t i, real* grad) const {
    const int64_t n = len(), d = q.dim(3), heads = q.dim(1) / scores.dim(1);
    const int64_t b = choice / scores.dim(1), seen = causal ? i + 1 : valid(b);
    if (i >= valid(b)) return 0;
    const real* const own = scores.data() + (choice * n + i) * n;
    const std::vector<int64_t> at = chosen(own, seen);
    const int64_t count = std::ssize(at);
    RowNumbers wanted(at.size()), logits(at.size());
    const double tau = 1 / std::sqrt(static_cast<double>(d));
    for (int64_t head = choice * heads; head < (choice + 1) * heads; ++head) {
      for (size_t j = 0; j < at.size(); ++j)
        logits[j] = tau * static_cast<double>(row_dot(q.data() + (head * n + i) * d,
                                                      k.data() + (head * n + at[j]) * d, d));
      normalise(logits, count);
      for (size_t j = 0; j < wanted.size(); ++j)
        wanted[j] += logits[j] / static_cast<double>(heads);
    }
    for (size_t j = 0; j < at.size(); ++j) logits[j] = static_cast<double>(own[at[j]]);
    double loss = normalise(logits, count);
    for (size_t j = 0; j < at.size(); ++j) {
      loss -= wanted[j] * static_cast<double>(own[at[j]]);
      if (grad) grad[at[j]] = weight * static_cast<real>(logits[j] - wanted[j]);
    }
    return loss;
  }
};

// I [batch, choices, len, len] of all pairs.
Var scores_of(const Var& q, const Var& k, const IndexWeights& by) {
  const bool shared = by.key.shape().rank() == 3;
  const int64_t batch = q.dim(0), heads = q.dim(1), n = q.dim(2), d = q.dim(3);
  const int64_t choices = shared ? 1 : heads, dim = by.key.dim(-1), count = by.weight.dim(2);
  const auto times = [&](const Var& rows, const Var& weight) {
    const int64_t to = weight.dim(-1);
    if (!shared) return matmul(rows, weight);
    return reshape(matmul(merge_heads(rows), reshape(weight, {heads * d, to})), {batch, 1, n, to});
  };
  const Var keys =
      layer_norm(times(k, by.key), Var(Tensor::full({dim}, 1)), Var(Tensor::zeros({dim})));
  const Var queries = times(q, by.query), weights = shift(times(q, by.weight), 1);
  Var sum;
  for (int64_t c = 0; c < count; ++c) {
    const Var products = relu(matmul(slice(queries, 3, c * dim, (c + 1) * dim), keys, false, true));
    const Var one = scale_rows(products, reshape(slice(weights, 3, c, c + 1), {batch, choices, n}));
    sum = sum.defined() ? add(sum, one) : one;
  }
  return sum;
}

}  // namespace

Var index_mimicry(const Tensor& q, const Tensor& k, const IndexWeights& by, const Mask& mask,
                  int64_t keys) {
  ATTN_CHECK(q.shape() == k.shape() && !mask.edges,
             "the loss of an indexer is of self-attention without edges, not of queries {} and "
             "keys {}",
             q.shape().str(), k.shape().str());
  const Var scores =
      scores_of(zero_padding(Var(q), mask.kv_lengths), zero_padding(Var(k), mask.kv_lengths), by);
  MimicryRows rows{q, k, scores.value(), mask.kv_lengths, mask.causal};
  const int64_t n = rows.len(), choices = scores.dim(0) * scores.dim(1);
  int64_t count = 0;
  for (int64_t b = 0; b < scores.dim(0); ++b) count += scores.dim(1) * rows.valid(b);
  const double weight = 1 / static_cast<double>(std::max<int64_t>(1, count));
  rows.weight = static_cast<real>(weight);
  rows.keys = keys;
  const Tensor grad = recording({scores}) ? Tensor::zeros(scores.shape()) : Tensor();
  std::vector<double> losses(static_cast<size_t>(choices * n));
  parallel_for(choices * n, 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      losses[static_cast<size_t>(row)] =
          rows.loss(row / n, row % n, grad.defined() ? grad.data() + row * n : nullptr);
  });
  double total = 0;
  for (const double loss : losses) total += loss;
  return custom_op(Tensor::full({1}, static_cast<real>(total * weight)), {scores},
                   [grad](const Tensor& g, std::span<Tensor> grads) {
                     for (int64_t i = 0; i < grad.size(); ++i) grads[0][i] += g[0] * grad[i];
                   });
}

}  // namespace attn
