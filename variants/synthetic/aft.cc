// aft: attention-free: per channel, values weighted by e^(k_j + w_tj) with learned pair biases w,
// and gated by σ(q). Zhai et al. 2021, arXiv:2105.14103, eqs. 2-4. Time full 4·n²·d + 2·n²·rank,
// local and conv with the window for one n, simple 6·n·d; memory 3·n·d, weights 2·max_len·rank.
#include "core/base/check.h"
#include "variants/api/variant_info.h"
#include "variants/reference/aft.h"
#include "variants/synthetic/synthetic.h"

namespace attn::variants {
namespace {

class Aft final : public Attention {
 public:
  explicit Aft(const AttentionConfig& config) : Attention(config) {
    const std::string& kind = params().text("kind");
    if (kind == "simple") return;
    if (kind != "full") biases_.window = params().integer("window");
    if (kind == "conv") {
      const int64_t distances = config.causal ? biases_.window : 2 * biases_.window - 1;
      biases_.distance = normal_weight("distance", {config.heads, distances}, kDeviation);
      return;
    }
    const Shape shape = {config.max_len, params().integer("rank")};
    biases_.left = normal_weight("left", shape, kDeviation);
    biases_.right = normal_weight("right", shape, kDeviation);
  }

 private:
  static constexpr double kDeviation = 0.01;

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    ATTN_CHECK(biases_.rank() == 0 || k.dim(2) <= config().max_len,
               "aft was built for {} positions, got {}", config().max_len, k.dim(2));
    return aft_attention(q, k, v, biases_, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override { return aft_cost(shape, biases_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return aft_decoder(position, capacity, biases_);
  }

  AftBiases biases_;  // of all heads and channels
};

}  // namespace

VariantInfo aft() {
  return {
      .name = "aft",
      .family = "synthetic",
      .summary = "values weighted by e^(key + learned pair bias) in each channel, gated by queries",
      .paper = "Zhai et al. 2021, arXiv:2105.14103, eqs. 2-4",
      .cost_formula =
          "full 4·n²·d + 2·n²·rank/heads FLOPs a head, causal half; local and conv the same "
          "over the window; simple 6·n·d; memory 3·n·d, weights 2·max_len·rank or heads·window",
      .traits = {.causal = true, .fixed_length = true, .decode = true},
      .params =
          {{"kind",
            {"full", "local", "conv", "simple"},
            "full: a bias for each pair; local: within the window; conv: there, of each head and "
            "distance; simple: none"},
           ParamSpec("rank", 64, "columns of the two factors of the biases", 1, 4096)
               .when("kind", "full")
               .when("kind", "local"),
           ParamSpec("window", 64, "biases of pairs closer than this", 1)
               .when("kind", "local")
               .when("kind", "conv")},
      .make = make_as<Aft>,
      .reference =
          [](const ReferenceInputs& x) {
            const std::string& kind = x.params().text("kind");
            const int64_t window =
                kind == "local" || kind == "conv" ? x.params().integer("window") : x.k.len;
            const oracle::PairBias bias =
                kind == "conv" ? oracle::bias_of_distance(x.weights[0], x.config.causal)
                               : oracle::bias_of_factors(x.weights, window);
            return oracle::attention_free(x.q, x.k, x.v, bias, x.visible());
          },
      .notes = {"Biases w_tj = left_t·right_j are factorised, left and right [max_len, rank], and "
                "all heads and channels share them. The paper's rank is 128, idiap's 64. Keys "
                "outside the window of local and conv count with e^k.",
                "idiap's full kind multiplies keys by biases where the paper adds them, so that a "
                "masked pair of weight -∞ can become +∞; its causal simple kind divides each term "
                "by the sum at j instead of at t. rish-16's code takes no maximum, has no causal "
                "form, and draws local biases anew in each pass. Here none of these.",
                "The largest exponent is found for each tile and channel among visible keys. One "
                "maximum of the whole sequence would let a large future key turn earlier weights "
                "into 0. Where |left_t|·|right_j| may pass 30, each pair and channel gets an "
                "exponential of its own: exact and slow.",
                "distance [heads, window] of conv holds the biases of t - j = 0 .. window - 1, "
                "not causal [heads, 2·window - 1] those from 1 - window on. They are the "
                "exponents themselves: the paper's normalised form of the filter is left out."}};
}

}  // namespace attn::variants
