// gau: a gated attention unit: one head of squared relu weights between narrow queries and keys of
// one projection, its output gated elementwise. Hua et al. 2022, arXiv:2202.10447, section 3.1.
// Time 2·n²·(base + units) and 2·n·d·(3·units + base) for the projections; memory n·units.
#include <algorithm>

#include "core/ops/ops.h"
#include "core/simd/product.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/reference/units.h"
#include "variants/scores/gated_unit.h"
#include "variants/scores/scores.h"

namespace attn::variants {
namespace {

class Gau final : public Mixer {
 public:
  explicit Gau(const AttentionConfig& config)
      : Mixer(config),
        base_(params().integer("base")),
        units_(params().integer("expansion") * width()) {
    const auto drawn = [&](const char* name, const Shape& shape) {
      return normal_weight(name, shape, kDeviation);
    };
    const auto zeros = [&](const char* name) { return weight(name, Tensor::zeros({base_})); };
    weights_.gate = drawn("gate", {width(), units_});
    weights_.value = drawn("value", {width(), units_});
    weights_.base = drawn("base", {width(), base_});
    weights_.query_scale = drawn("query_scale", {base_});
    weights_.query_shift = zeros("query_shift");
    weights_.key_scale = drawn("key_scale", {base_});
    weights_.key_shift = zeros("key_shift");
    weights_.out = drawn("out", {units_, width()});
  }

 private:
  static constexpr double kDeviation = 0.02;  // the paper's, of every weight

  Var do_mix(const Var& x, const Mask& mask) const override {
    const GatedUnitRows rows = gated_unit_rows(zero_padding(x, mask.kv_lengths), weights_);
    const Var mixed = relu_attention(rows.q, rows.k, rows.v, mask, ReluPower::squared);
    return linear(multiply(reshape(mixed, rows.gate.shape()), rows.gate), weights_.out, {});
  }

  Cost do_cost(const AttentionShape& s) const override {
    AttentionShape one = s;
    one.heads = 1, one.head_dim = base_;
    Cost cost = relu_cost(one, units_);
    const auto rows = static_cast<double>(s.batch * s.kv_len), base = static_cast<double>(base_),
               units = static_cast<double>(units_), d = static_cast<double>(width());
    const auto packed = static_cast<double>(packed_reals(width(), units_));
    const double projections = 2 * rows * d * (3 * units + base);
    cost.flops += projections, cost.backward_flops += 2 * projections;
    cost.bytes += sizeof(real) * (rows * (2 * d + 9 * units + 9 * base) + d * (3 * units + base));
    // Queries, keys, gates and values beside the attention; what makes queries and keys; or beside
    // them the mixed values, gated, the output and its packed weight.
    cost.peak_bytes = std::max({cost.peak_bytes + sizeof(real) * rows * (2 * units + 2 * base),
                                sizeof(real) * rows * 4 * base,
                                sizeof(real) * (rows * (4 * units + 2 * base + d) + packed)});
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return gated_unit_decoder(position, capacity, weights_);
  }

  int64_t base_, units_;
  GatedUnitWeights weights_;
};

}  // namespace

VariantInfo gau() {
  return {
      .name = "gau",
      .family = "other scores",
      .summary = "a gated attention unit: one narrow head of squared relu weights, and a gate",
      .paper = "Hua et al. 2022, arXiv:2202.10447, section 3.1",
      .cost_formula =
          "2·n²·(base + units) FLOPs, causal half, and 2·n·d·(3·units + base) for the "
          "projections, units = expansion·d, d = heads · head_dim; memory 4·n·units",
      .traits = {.causal = true, .permutable = true, .decode = true, .mixer = true},
      .params = {{"base", 128, "numbers of a query and a key", 1, 4096},
                 {"expansion", 2, "numbers of a value and a gate, over the width", 1, 64}},
      .make = make_as<Gau>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::split(oracle::gated_unit(oracle::merged(x.v), x.weights, x.mask.causal,
                                                    {x.mask.kv_lengths}, x.rows),
                                 x.v.heads);
          },
      .notes = {"The whole unit of the paper: it reads the layer's input, makes its projections "
                "itself, and its cost holds them, as that of a mixer does. In the paper it "
                "stands for attention and feed-forward layer both; here the latter remains, unless "
                "block=paper.",
                "Logits are divided by the number of visible keys, the paper's n. A causal row "
                "divides by what it sees: the paper's code divides by the whole length there "
                "too, so that its outputs depend on what follows.",
                "Without a relative position bias. FLASH's chunks, a linear attention between "
                "groups of 256, are left out."},
      .block = LayerBlock{.projects_values = false,
                          .projects_output = false,
                          .feed_forward = FeedForward::none,
                          .notes = {"Hua et al. 2022, section 3.1: the unit is the whole layer. No "
                                    "feed-forward follows it; two such layers stand for one of a "
                                    "Transformer."}}};
}

}  // namespace attn::variants
