// conv: 1-D convolution over positions, O_i = b + Σ_k x_{i-p+k}·W_k with a full matrix for each of
// `kernel` offsets, zeros beyond both ends. Waibel et al. 1989, IEEE Trans. ASSP 37(3), section II
// (time delays). Time 2·n·kernel·d², memory n·d; one linear map, no non-linearity.
#include <cmath>

#include "variants/kernels/window_decoder.h"
#include "variants/kernels/window_product.h"
#include "variants/mixer.h"

namespace attn::variants {
namespace {

class Conv final : public Mixer {
 public:
  explicit Conv(const AttentionConfig& config)
      : Mixer(config),
        kernel_(params().integer("kernel")),
        weight_(Tensor::normal({kernel_, width(), width()}, rng(config.seed, "conv.weight"),
                               1 / std::sqrt(static_cast<double>(kernel_ * width()))),
                true),
        bias_(Tensor::zeros({width()}), true) {}

 private:
  Var do_mix(const Var& x, const Mask& mask) const override {
    return window_product(x, weight_, bias_,
                          {.kernel = kernel_,
                           .before = config().causal ? kernel_ - 1 : kernel_ / 2,
                           .lengths = mask.kv_lengths});
  }
  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = window_product_cost(shape.batch, shape.kv_len, width(), width(), kernel_);
    cost.state_bytes = window_state_bytes(shape.batch, width(), kernel_);
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return window_decoder(position, capacity, kernel_, {{weight_.value(), bias_.value()}});
  }
  std::vector<Weight> do_weights() const override { return {{"weight", weight_}, {"bias", bias_}}; }

  int64_t kernel_;
  Var weight_, bias_;  // [kernel, width, width], [width]
};

}  // namespace

VariantInfo conv() {
  return {.name = "conv",
          .family = "convolution",
          .summary = "1-D convolution over positions, without queries and keys",
          .paper = "Waibel et al. 1989, IEEE Trans. ASSP 37(3), section II",
          .cost_formula = "2·n·kernel·d² FLOPs for a width of d = heads · head_dim; memory n·d",
          .traits = {.causal = true, .linear_time = true, .decode = true, .mixer = true},
          .params = {{"kernel", 5,
                      "positions that an output sees, its own in their middle (causal: the last); "
                      "odd unless causal"}},
          .make = make_as<Conv>,
          .limit = [](const AttentionShape&) { return std::nullopt; },
          .skip_reason = [](const AttentionShape& shape,
                            const Params& params) -> std::optional<std::string> {
            if (shape.causal || params.integer("kernel") % 2 == 1) return std::nullopt;
            return "an even kernel has no middle";
          }};
}

}  // namespace attn::variants
