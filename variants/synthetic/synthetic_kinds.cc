// Weights, costs and decoding of each kind; see synthetic_kinds.h. The costs are formulas for the
// ops of the forward. O(1).
#include "variants/synthetic/synthetic_kinds.h"

#include <cmath>

#include "core/base/check.h"
#include "variants/softmax/softmax.h"
#include "variants/synthetic/synthetic_attention.h"

namespace attn {

std::vector<SyntheticFactor> synthetic_factors(const std::string& kind,
                                               const AttentionConfig& config, int64_t rank) {
  const int64_t heads = config.heads, n = config.max_len, d = config.head_dim;
  const auto root = [](int64_t x) { return std::sqrt(static_cast<double>(x)); };
  if (kind == "dense") return {{"keys", {heads, n, d}, 1 / root(d)}};
  if (kind == "random") return {{"logits", {heads, n, n}, 1}};
  if (kind == "mixed") return {{"logits", {heads, n, n}, 1 / root(heads * n)}};
  if (kind == "factorized_random") {
    const double each = 1 / std::sqrt(root(rank));  // of products whose sum has variance 1
    return {{"left", {heads, n, rank}, each}, {"right", {heads, n, rank}, each}};
  }
  ATTN_CHECK(kind == "factorized_dense", "no logits of kind {}", kind);
  const auto left = static_cast<int64_t>(std::ceil(root(n)));
  return {{"left", {heads, d, left}, 1 / root(d)},
          {"right", {heads, d, (n + left - 1) / left}, 1 / root(d)}};
}

Cost synthetic_cost(const AttentionShape& s, const std::string& kind,
                    std::span<const Var> factors) {
  const double rows = static_cast<double>(s.batch * s.heads * s.q_len),
               d = static_cast<double>(s.head_dim), size = sizeof(real);
  Cost cost = synthetic_cost(s, kind == "mixed");
  double held = 0;  // beside the output
  if (kind == "dense") {
    cost = softmax_cost(s);
    held = 2 * rows * d;
  } else if (kind == "factorized_random") {
    AttentionShape thin = s;
    thin.head_dim = factors[0].dim(2);
    const double rank = static_cast<double>(thin.head_dim);
    cost = softmax_cost(thin);
    cost.flops *= (rank + d) / (2 * rank), cost.backward_flops *= (3 * rank + 2 * d) / (5 * rank);
    held = rows * (rank + d);
  } else if (kind == "factorized_dense") {
    const double both = static_cast<double>(factors[0].dim(2) + factors[1].dim(2));
    cost.flops += 2 * rows * d * both;
    cost.backward_flops += 4 * rows * d * both;
    held = rows * (d + both);
  }
  cost.bytes = size * 4 * rows * d;
  for (const Var& factor : factors) cost.bytes += size * static_cast<double>(factor.shape().size());
  cost.peak_bytes += size * held;
  cost.state_bytes = (kind == "mixed" ? 2 : 1) * size * rows * d;  // values, and keys where read
  return cost;
}

SyntheticLogits synthetic_logits(const std::string& kind, std::span<const Var> factors) {
  const Tensor first = factors[0].value(), second = factors.back().value();
  if (kind == "dense") return product_logits({}, first);
  if (kind == "factorized_random") return product_logits(first, second);
  if (kind == "factorized_dense") return outer_logits(first, second);
  SyntheticLogits logits = matrix_logits(first);
  logits.products = kind == "mixed";
  return logits;
}

}  // namespace attn
