// synthesizer: weights that do not compare positions: dense, logits relu(q_i)·W of a position's own
// input (q plays W₁x, k is ignored, no bias); random, a learned n×n matrix; factorized_*. Tay et
// al. 2021, arXiv:2005.00743, eqs. 1-8. Time 2·n²·d (dense 4·n²·d), memory n·d, weights to max_len.
#include "core/base/check.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/reference/synthesizer.h"
#include "variants/softmax/softmax.h"
#include "variants/synthetic/synthetic.h"

namespace attn::variants {
namespace {

class Synthesizer final : public Attention {
 public:
  explicit Synthesizer(const AttentionConfig& config)
      : Attention(config), kind_(params().text("as") == "lra" ? "mixed" : params().text("kind")) {
    for (const SyntheticFactor& f : synthetic_factors(kind_, config, params().integer("rank")))
      logits_.push_back(normal_weight(f.name, f.shape, f.deviation));
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    ATTN_CHECK(k.dim(2) <= config().max_len, "synthesizer was built for {} positions, got {}",
               config().max_len, k.dim(2));
    const SoftmaxOptions options{.causal = mask.causal, .kv_lengths = mask.kv_lengths, .scale = 1};
    const auto rows = [&](size_t i) { return rows_for_batch(logits_[i], v.dim(0), v.dim(2)); };
    if (kind_ == "mixed") return biased_attention(q, k, v, logits_[0], mask);
    if (kind_ == "random") return matrix_attention(logits_[0], v, mask);
    if (kind_ == "factorized_random") return softmax_attention(rows(0), rows(1), v, options);
    const Var hidden = relu(q);  // [batch, heads, len, head_dim]
    if (kind_ == "dense") return softmax_attention(hidden, rows(0), v, options);
    return outer_attention(matmul(hidden, logits_[0]), matmul(hidden, logits_[1]), v, mask);
  }

  Cost do_cost(const AttentionShape& s) const override { return synthetic_cost(s, kind_, logits_); }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    ATTN_CHECK(capacity <= config().max_len, "synthesizer was built for {} positions, got {}",
               config().max_len, capacity);
    return synthetic_decoder(position, capacity, synthetic_logits(kind_, logits_));
  }

  std::string kind_;         // or mixed, as=lra: products and a matrix
  std::vector<Var> logits_;  // of each head, learned, or what makes them
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
          "factorized_random 2·n²·(rank + d); memory n·d, weights up to N² a head; as=lra 4·n²·d",
      .traits = {.causal = true, .fixed_length = true, .convex = true, .decode = true},
      .params = {ParamSpec("kind", {"dense", "random", "factorized_dense", "factorized_random"},
                           "dense: logits relu(q)·W; random: learned n×n; factorized: two factors")
                     .when("as", "paper"),
                 ParamSpec("rank", 8, "columns of the two factors", 1, 4096)
                     .when("kind", "factorized_random"),
                 {"as",
                  {"paper", "lra"},
                  "lra: Long Range Arena's logits, q·k/√d plus those of kind=random"}},
      .make = make_as<Synthesizer>,
      .reference =
          [](const ReferenceInputs& x) {
            if (x.params().text("as") == "lra")
              return oracle::synthesizer_lra(x.q, x.k, x.v, x.weights[0], x.visible());
            return oracle::synthesizer(x.params().text("kind"), x.q, x.v, x.weights.front(),
                                       x.weights.back(), x.visible());
          },
      .limit = [](const AttentionShape&) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"as", std::string("lra")}},
                                  .prepare = [](const Attention& attention) {
                                    const Var logits = attention.weights()[0].value;
                                    logits.set_value(Tensor::zeros(logits.shape()));
                                  }};
      },
      .reads =
          [](const Params& params) {
            const std::string& kind = params.text("kind");
            if (params.text("as") == "lra") return VariantInfo::Reads{};
            return VariantInfo::Reads{kind == "dense" || kind == "factorized_dense", false};
          },
      .notes = {"The layer's queries stand for the first layer's output W₁·x of the dense kinds, "
                "without biases; keys are read by as=lra alone, and not projected elsewhere.",
                "kind=factorized_dense: of factors with a and c columns, logit j is column j mod a "
                "of the "
                "first times column j / a of the second, rounded down: the first is tiled, the "
                "second repeated.",
                "as=lra: Long Range Arena runs a mixture that compares: logits q·k/√d plus a "
                "learned n×n matrix; padding is hidden."}};
}

}  // namespace attn::variants
