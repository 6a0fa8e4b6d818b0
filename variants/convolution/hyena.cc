// hyena: y = q ⊙ (h∗(k⊙v) + d ⊙ k ⊙ v), a long convolution between two gates, whose filter h is a
// small network of the distance. Poli et al. 2023, arXiv:2302.10866, definition 3.1 for order 2 and
// section 3.3. Time 15·n·log2(n) a channel and about 128·n·d for the filter; memory n·d.
#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/convolution/convolution.h"
#include "variants/reference/long_convolutions.h"

namespace attn::variants {
namespace {

class Hyena final : public Attention {
 public:
  explicit Hyena(const AttentionConfig& config)
      : Attention(config),
        form_(form_of(params())),
        bands_(params().integer("bands")),
        hidden_(params().integer("hidden")),
        width_(config.heads * config.head_dim) {
    filter_.longest = config.max_len - 1;
    int64_t in = filter_inputs(bands_);
    for (const char* name : {"first", "second", "third"}) {
      const double deviation = 1 / std::sqrt(3 * static_cast<double>(in));
      const std::string layer = name;
      const Var matrix = normal_weight(layer, {in, hidden_}, deviation);
      filter_.layers.push_back({matrix, normal_weight(layer + "_bias", {hidden_}, deviation)});
      in = hidden_;
    }
    filter_.frequency = weight("frequency", Tensor::full({hidden_}, 1));
    filter_.out =
        normal_weight("out", {hidden_, width_}, 1 / std::sqrt(3 * static_cast<double>(hidden_)));
    skip_ = normal_weight("skip", {width_}, 1);
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const int64_t len = k.dim(2);
    ATTN_CHECK(len <= config().max_len, "hyena was built for {} positions, got {}",
               config().max_len, len);
    const bool causal = config().causal;
    const Var gated = multiply(zero_padding(k, mask.kv_lengths), zero_padding(v, mask.kv_lengths));
    const Var taps =
        causal ? filter_taps(filter_, 0, len) : filter_taps(filter_, 1 - len, 2 * len - 1);
    return multiply(long_convolution(gated, taps, skip_,
                                     {.causal = causal, .lengths = mask.kv_lengths, .form = form_}),
                    q);
  }

  Cost do_cost(const AttentionShape& s) const override {
    const FilterSize size{s.causal ? s.kv_len : 2 * s.kv_len - 1, bands_, hidden_,
                          std::ssize(filter_.layers), width_};
    const double numbers = sizeof(real) * static_cast<double>(s.batch * width_ * s.kv_len),
                 filter = sizeof(real) * static_cast<double>(size.taps * width_);
    Cost cost = long_convolution_cost(s, {.causal = s.causal, .form = form_});
    if (cost.backward_flops == 0) cost.backward_flops = 2 * cost.flops;
    cost.flops += filter_flops(size);
    cost.backward_flops += 2 * filter_flops(size);
    cost.bytes += 5 * numbers + filter;  // two gates, each read and written
    cost.peak_bytes = std::max(numbers + filter_peak_bytes(size),
                               numbers + filter + std::max(cost.peak_bytes, 2 * numbers));
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (position[2] > 1) return nullptr;  // each query head has filters of its own
    const NoGrad no_grad;
    return history_decoder(position, capacity,
                           {filter_taps(filter_, 0, capacity).value(), skip_.value(), true});
  }

  ConvolutionForm form_;
  int64_t bands_, hidden_, width_;
  ImplicitFilter filter_;
  Var skip_;  // [width]
};

}  // namespace

VariantInfo hyena() {
  return {
      .name = "hyena",
      .family = "convolution",
      .summary = "q times a long convolution of k times v, its filter a network of the distance",
      .paper = "Poli et al. 2023, arXiv:2302.10866, definition 3.1 for order 2, section 3.3",
      .cost_formula =
          "15·n·d·log2(n) FLOPs, up to 256 positions 2·n²·d, causal n²·d, and "
          "2·n·hidden·(2·hidden + d) for the filter, not causal twice; for a width of d = "
          "heads · head_dim; memory 3·n·d",
      .traits = {.causal = true, .fixed_length = true, .decode = true},
      .params = {{"hidden", 64, "units of the filter's network"},
                 {"bands", 1, "frequencies of the distance that the network reads", 0, 64},
                 convolution_form()},
      .make = make_as<Hyena>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::gated_convolution(x.q, x.k, x.v, x.weights, x.config.max_len - 1,
                                             x.config.causal, {x.mask.kv_lengths}, x.rows);
          },
      .rounds_with_all = uses_fourier,
      .notes =
          {"Order 2: queries, keys and values stand for the paper's projections x1, x2 and v, "
           "which "
           "a "
           "layer makes and pays for. The short convolution of each is left out, as those of the "
           "gated variants are. The filter is the variant's own, made anew by each pass.",
           "Distances are over max_len, never the length at hand, which would change the filter.",
           "The network reads t, cos and sin of 2πk·t/max_len for k = 1..bands; the paper's code "
           "begins at k = 1e-4, where both are all but constant. Order 2 is one long convolution, "
           "as "
           "in that code; the recurrence of the paper has two.",
           convolution_form_note(),
           "The decoder holds k⊙v of every position (width numbers each) and the filter: a step "
           "costs "
           "2·n·width FLOPs."},
      .block = LayerBlock{
          .convolution = {.kernel = 3, .bias = true},
          .projection_biases = true,
          .replaces_steps = true,
          .notes = {"Poli et al. 2023, section 3.4; HazyResearch/safari, "
                    "models/sequence/hyena.py: a convolution of 3 of each projection."}}};
}

}  // namespace attn::variants
