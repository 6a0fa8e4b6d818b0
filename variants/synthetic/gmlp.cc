// gmlp: one half of the channels times a learned mixture of the positions of the other half,
// between two projections. Liu et al. 2021, arXiv:2105.08050, section 3. Time 2·n²·units +
// 6·n·d·units, memory n·units and, as weights, max_len².
#include <algorithm>

#include "core/base/check.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/reference/units.h"
#include "variants/synthetic/synthetic.h"

namespace attn::variants {
namespace {

class GMlp final : public Mixer {
 public:
  explicit GMlp(const AttentionConfig& config)
      : Mixer(config), units_(params().integer("expansion") * width() / 2) {
    const int64_t longest = config.max_len;
    weights_.in = glorot_weight("in", {width(), 2 * units_});
    weights_.in_bias = weight("in_bias", Tensor::zeros({2 * units_}));
    weights_.gain = weight("gain", Tensor::full({units_}, 1));
    weights_.shift = weight("shift", Tensor::zeros({units_}));
    weights_.spatial =
        normal_weight("spatial", {longest, longest}, kNearZero / static_cast<double>(longest));
    weights_.spatial_bias = weight("spatial_bias", Tensor::full({longest, 1}, 1));
    weights_.out = glorot_weight("out", {units_, width()});
    weights_.out_bias = weight("out_bias", Tensor::zeros({width()}));
  }

 private:
  // The mixture starts near 0 and its bias at 1, so that the unit passes its input on
  // (section 3.1).
  static constexpr double kNearZero = 1e-3;

  Var do_mix(const Var& x, const Mask& mask) const override {
    ATTN_CHECK(x.dim(1) <= config().max_len, "gmlp was built for {} positions, got {}",
               config().max_len, x.dim(1));
    return spatial_gate(x, weights_, mask);
  }

  Cost do_cost(const AttentionShape& s) const override {
    const auto rows = static_cast<double>(s.batch * s.kv_len), d = static_cast<double>(width()),
               units = static_cast<double>(units_), len = static_cast<double>(s.kv_len);
    Cost cost{.flops = 2 * static_cast<double>(s.batch) * units * mixed_pairs(s.kv_len, s.causal) +
                       6 * rows * units * d + 2 * len * units};
    cost.bytes = sizeof(real) * (rows * (2 * d + 12 * units) + len * len + 3 * d * units);
    cost.peak_bytes = sizeof(real) * units * std::max(5 * rows, 4 * rows + len);
    cost.state_bytes = sizeof(real) * rows * units;
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return spatial_gate_decoder(position, capacity, weights_);
  }

  int64_t units_;  // of each half
  SpatialGateWeights weights_;
};

}  // namespace

VariantInfo gmlp() {
  return {
      .name = "gmlp",
      .family = "synthetic",
      .summary = "half of the channels gated by a learned mixture of positions of the others",
      .paper = "Liu et al. 2021, arXiv:2105.08050, section 3",
      .cost_formula =
          "2·n²·units FLOPs, causal n·(n + 64)·units, and 6·n·d·units, units = expansion·d/2, d "
          "= heads · head_dim; memory 5·n·units, weights max_len²",
      .traits = {.causal = true, .fixed_length = true, .decode = true, .mixer = true},
      .params = {{"expansion", 4, "numbers between the two projections, over the width; even", 2,
                  64}},
      .make = make_as<GMlp>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::split(oracle::spatial_gating(oracle::merged(x.v), x.weights,
                                                        x.mask.causal, {x.mask.kv_lengths}, x.rows),
                                 x.v.heads);
          },
      .skip_reason = [](const AttentionShape& shape,
                        const Params& params) -> std::optional<std::string> {
        if (params.integer("expansion") * shape.heads * shape.head_dim % 2 == 0)
          return std::nullopt;
        return "an odd number of channels has no halves";
      },
      .notes = {"The whole block of the paper but its norm: it reads the layer's input, makes its "
                "projections itself, and its cost holds them, as that of a mixer does. In the "
                "paper it stands for attention and feed-forward layer both; here the latter "
                "remains, unless block=paper. The paper's models expand by 6.",
                "The first half is the residual, the second one, normalised, is mixed. spatial "
                "[max_len, max_len] is cut to the length at hand, causal below the diagonal; "
                "popular code does not cut it where it is not causal, and fails on shorter "
                "inputs."},
      .block = LayerBlock{.projects_values = false,
                          .projects_output = false,
                          .feed_forward = FeedForward::none,
                          .notes = {"Liu et al. 2021, section 2: the block is the whole layer. No "
                                    "feed-forward follows it."}}};
}

}  // namespace attn::variants
