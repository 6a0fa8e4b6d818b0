// synthesizer: weights that do not compare positions: dense, logits relu(q_i)·W of a position's own
// input (q plays W₁x, k is ignored, no bias); random, a learned n×n matrix; factorized_*. Tay et
// al. 2021, arXiv:2005.00743, eqs. 1-8. Time 2·n²·d (dense 4·n²·d), memory n·d, weights to max_len.
#include <cmath>

#include "core/check.h"
#include "core/ops.h"
#include "variants/attention.h"
#include "variants/kernels/softmax_attention.h"
#include "variants/kernels/synthetic_attention.h"
#include "variants/kernels/synthetic_decoder.h"

namespace attn::variants {
namespace {

class Synthesizer final : public Attention {
 public:
  explicit Synthesizer(const AttentionConfig& config) : Attention(config) {
    const int64_t n = config.max_len, d = config.head_dim, rank = params().integer("rank");
    const auto left = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    if (kind() == "dense") weights_ = {draw("keys", n, d, static_cast<double>(d))};
    if (kind() == "random") weights_ = {draw("logits", n, n, 1)};
    if (kind() == "factorized_random")  // of a product of rank terms, of variance 1
      weights_ = {draw("left", n, rank, std::sqrt(static_cast<double>(rank))),
                  draw("right", n, rank, std::sqrt(static_cast<double>(rank)))};
    if (kind() == "factorized_dense")
      weights_ = {draw("left", d, left, static_cast<double>(d)),
                  draw("right", d, (n + left - 1) / left, static_cast<double>(d))};
  }

 private:
  const std::string& kind() const { return params().text("kind"); }

  Weight draw(const char* name, int64_t rows, int64_t cols, double fan_in) const {
    const Shape shape{config().heads, rows, cols};
    return {name,
            Var(Tensor::normal(shape, rng(config().seed, name), 1 / std::sqrt(fan_in)), true)};
  }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    ATTN_CHECK(k.dim(2) <= config().max_len, "synthesizer was built for {} positions, got {}",
               config().max_len, k.dim(2));
    const SoftmaxOptions options{.causal = mask.causal, .kv_lengths = mask.kv_lengths, .scale = 1};
    const auto rows = [&](size_t i) {
      return rows_for_batch(weights_[i].value, v.dim(0), v.dim(2));
    };
    if (kind() == "dense") return softmax_attention(relu(q), rows(0), v, options);
    if (kind() == "random") return matrix_attention(weights_[0].value, v, mask);
    if (kind() == "factorized_random") return softmax_attention(rows(0), rows(1), v, options);
    const Var hidden = relu(q);  // [batch, heads, len, head_dim]
    return outer_attention(matmul(hidden, weights_[0].value), matmul(hidden, weights_[1].value), v,
                           mask);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    const double rows = static_cast<double>(shape.batch * shape.heads * shape.q_len),
                 d = static_cast<double>(shape.head_dim), size = sizeof(real);
    Cost cost = synthetic_cost(shape);
    double held = 0;  // beside the output, by formula of what do_forward makes
    if (kind() == "dense") {
      cost = softmax_cost(shape);
      held = 2 * rows * d;
    } else if (kind() == "factorized_random") {
      AttentionShape thin = shape;
      thin.head_dim = params().integer("rank");
      const double rank = static_cast<double>(thin.head_dim);
      cost = softmax_cost(thin);
      cost.flops *= (rank + d) / (2 * rank), cost.backward_flops *= (3 * rank + 2 * d) / (5 * rank);
      held = rows * (rank + d);
    } else if (kind() == "factorized_dense") {
      const double both = static_cast<double>(weights_[0].value.dim(2) + weights_[1].value.dim(2));
      cost.flops += 2 * rows * d * both;
      cost.backward_flops += 4 * rows * d * both;
      held = rows * (d + both);
    }
    cost.bytes = size * 4 * rows * d;
    for (const Weight& weight : weights_)
      cost.bytes += size * static_cast<double>(weight.value.shape().size());
    cost.peak_bytes += size * held;
    cost.state_bytes = size * rows * d;  // values alone
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    ATTN_CHECK(capacity <= config().max_len, "synthesizer was built for {} positions, got {}",
               config().max_len, capacity);
    const Tensor first = weights_[0].value.value(), second = weights_.back().value.value();
    SyntheticLogits logits = product_logits(kind() == "dense" ? Tensor() : first, second);
    if (kind() == "random") logits = matrix_logits(first);
    if (kind() == "factorized_dense") logits = outer_logits(first, second);
    return synthetic_decoder(position, capacity, std::move(logits));
  }

  std::vector<Weight> do_weights() const override { return weights_; }

  std::vector<Weight> weights_;  // of each head, learned
};

}  // namespace

VariantInfo synthesizer() {
  return {
      .name = "synthesizer",
      .family = "synthetic",
      .summary = "weights from each position's own input, or learned ones, that compare nothing",
      .paper = "Tay et al. 2021, arXiv:2005.00743, eqs. 1-8",
      .cost_formula =
          "dense 4·n²·d FLOPs, random 2·n²·d, factorized_dense 2·n²·d + 4·n·d·√N, "
          "factorized_random 2·n²·(rank + d); memory n·d, weights up to N² a head",
      .traits = {.causal = true, .fixed_length = true, .convex = true, .decode = true},
      .params = {{"kind",
                  std::vector<std::string>{"dense", "random", "factorized_dense",
                                           "factorized_random"},
                  "dense: logits relu(q)·W; random: learned n×n; factorized: in two factors"},
                 {"rank", 8, "columns of the two factors (factorized_random)"}},
      .make = make_as<Synthesizer>,
      .limit = [](const AttentionShape&) { return std::optional<VariantInfo::Limit>(); }};
}

}  // namespace attn::variants
