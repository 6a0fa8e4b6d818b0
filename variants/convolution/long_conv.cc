// long_conv: each channel convolved with a learned filter as long as the sequence, y = h∗x + d⊙x,
// causal or of both sides. Fu et al. 2023, arXiv:2302.06646, section 3. Time 15·n·log2(n) a channel
// by Fourier transforms (n² up to 256 positions), memory n·d; weights up to max_len.
#include <cmath>

#include "core/base/check.h"
#include "core/ops/ops.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/convolution/convolution.h"
#include "variants/reference/long_convolutions.h"

namespace attn::variants {
namespace {

class LongConv final : public Mixer {
 public:
  explicit LongConv(const AttentionConfig& config)
      : Mixer(config),
        form_(form_of(params())),
        filter_(
            normal_weight("filter", {taps(), width()}, 1 / std::sqrt(static_cast<double>(taps())))),
        skip_(normal_weight("skip", {width()}, 1)) {}

 private:
  int64_t taps() const { return config().causal ? config().max_len : 2 * config().max_len - 1; }

  Var do_mix(const Var& x, const Mask& mask) const override {
    ATTN_CHECK(x.dim(1) <= config().max_len, "long_conv was built for {} positions, got {}",
               config().max_len, x.dim(1));
    const Var rows = reshape(x, {x.dim(0), 1, x.dim(1), x.dim(2)});
    return reshape(
        long_convolution(rows, filter_, skip_,
                         {.causal = config().causal, .lengths = mask.kv_lengths, .form = form_}),
        x.shape());
  }

  Cost do_cost(const AttentionShape& s) const override {
    AttentionShape merged = s;
    merged.heads = 1, merged.head_dim = s.heads * s.head_dim;
    return long_convolution_cost(merged, {.causal = s.causal, .form = form_});
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return history_decoder(position, capacity, {filter_.value(), skip_.value()});
  }

  ConvolutionForm form_;
  Var filter_, skip_;  // [taps, width], [width]
};

oracle::Array long_conv_reference(const ReferenceInputs& x) {
  return oracle::split(oracle::long_convolution(oracle::merged(x.v), x.weights[0], x.weights[1],
                                                x.config.causal, {x.mask.kv_lengths}, x.rows),
                       x.v.heads);
}

}  // namespace

VariantInfo long_conv() {
  return {.name = "long_conv",
          .family = "convolution",
          .summary = "each channel convolved with a learned filter as long as the sequence",
          .paper = "Fu et al. 2023, arXiv:2302.06646, section 3",
          .cost_formula =
              "15·n·d·log2(n) FLOPs for a width of d = heads · head_dim; up to 256 positions "
              "2·n²·d, causal n²·d; memory n·d, weights max_len·d (not causal 2·max_len·d)",
          .traits = {.causal = true, .fixed_length = true, .decode = true, .mixer = true},
          .params = {convolution_form()},
          .make = make_as<LongConv>,
          .reference = long_conv_reference,
          .rounds_with_all = uses_fourier,
          .notes = {
              "The mixer alone, a channel by itself: projections that mix channels, gates and "
              "activation functions are left to the model around it.",
              "filter [taps, width]: causal, row t is of distance t; else the middle row is "
              "of distance 0, rows before it read later positions. skip [width] is the "
              "paper's D. Filters start as N(0, 1/taps), without the paper's squashing.",
              "Transforms have n numbers, not 2n, and no wrapped value reaches an output. A plain "
              "cyclic convolution of n numbers reads the future.",
              convolution_form_note(),
              "The decoder holds every row so far (width numbers a position): a step costs "
              "2·n·width FLOPs. No state of constant size exists for a free filter."}};
}

}  // namespace attn::variants
