// mega: moving averages of each channel feed the queries, keys and gates of one narrow head of
// attention, within chunks or the whole sequence. Ma et al. 2022, arXiv:2209.10655, sections 3.1 to
// 3.4. Time 2·n²·(base + units), with chunks 2·n·chunk·(base + units), and 2·n·d·(base + 3·units +
// 2·d) for the projections; memory n·(4·units + d).
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/reference/mega.h"
#include "variants/scores/scores.h"

namespace attn::variants {
namespace {

class Mega final : public Mixer {
 public:
  explicit Mega(const AttentionConfig& config) : Mixer(config) {
    const int64_t d = width(), base = params().integer("base"),
                  units = params().integer("expansion") * d;
    w_.average.push_back(average(""));
    if (!config.causal) w_.average.push_back(average("reverse_"));
    w_.skip = normal_weight("skip", {d}, 1);
    layer("base", base, w_.base, w_.base_bias);
    w_.query_scale = normal_weight("query_scale", {base}, kDeviation);
    w_.query_shift = weight("query_shift", Tensor::zeros({base}));
    w_.key_scale = normal_weight("key_scale", {base}, kDeviation);
    w_.key_shift = weight("key_shift", Tensor::zeros({base}));
    layer("value", units, w_.value, w_.value_bias);
    layer("reset", units, w_.reset, w_.reset_bias);
    layer("update", d, w_.update, w_.update_bias);
    layer("candidate", d, w_.candidate, w_.candidate_bias);
    w_.out = normal_weight("out", {units, d}, kDeviation);
    if (params().text("score") == "relu2") w_.score = UnitScore::squared_relu;
    w_.chunk = params().integer("chunk");
  }

 private:
  static constexpr double kDeviation = 0.02;  // the paper's code's, as all starts here

  void layer(const std::string& name, int64_t out, Var& matrix, Var& bias) {
    matrix = normal_weight(name, {width(), out}, kDeviation);
    bias = weight(name + "_bias", Tensor::zeros({out}));
  }
  AverageWeights average(const std::string& prefix) {
    const Shape shape = {params().integer("states"), width()};
    AverageWeights w;
    w.step = normal_weight(prefix + "step", shape, 0.2);
    w.damping = normal_weight(prefix + "damping", shape, 0.2);
    const Tensor input = Tensor::normal(shape, rng(config().seed, prefix + "input"), kDeviation);
    for (int64_t i = 0; i < input.size(); ++i) input[i] += real(i / width() % 2 ? -1 : 1);
    w.input = weight(prefix + "input", input);
    w.output = normal_weight(prefix + "output", shape, 1);
    return w;
  }

  Var do_mix(const Var& x, const Mask& mask) const override { return mega_unit(x, w_, mask); }
  Cost do_cost(const AttentionShape& shape) const override { return mega_cost(shape, w_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return mega_decoder(position, capacity, w_);
  }

  MegaWeights w_;
};

}  // namespace

VariantInfo mega() {
  return {
      .name = "mega",
      .family = "other scores",
      .summary = "moving averages feed one gated head of attention, whole or in chunks",
      .paper = "Ma et al. 2022, arXiv:2209.10655, sections 3.1 to 3.4",
      .cost_formula =
          "2·n²·(base + units) FLOPs, causal half, in chunks 2·n·chunk·(base + units), and "
          "2·n·d·(base + 3·units + 2·d) for the projections, 12·n·d·states for the averages, units "
          "= expansion·d, d = heads · head_dim; memory n·(4·units + d)",
      .traits = {.causal = true, .decode = true, .mixer = true},
      .params = {{"base", 128, "numbers of a query and a key", 1, 4096},
                 {"expansion", 2, "numbers of a value, over the width", 1, 64},
                 {"states", 16, "moving averages of each channel", 1, 1024},
                 {"chunk", 0, "positions that attend to each other; 0: all", 0},
                 {"score", {"softmax", "relu2"}, "weights: softmax, or squared relu as in gau"}},
      .make = make_as<Mega>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::split(oracle::mega(oracle::merged(x.v), x.weights,
                                              {.causal = x.config.causal,
                                               .softmax = x.params().text("score") == "softmax",
                                               .chunk = x.params().integer("chunk")},
                                              {x.mask.kv_lengths}, x.rows),
                                 x.v.heads);
          },
      .notes = {"The whole layer of the paper: it reads the layer's input, makes its projections "
                "itself, and its cost holds them, as that of a mixer does. Norms and the "
                "feed-forward layer around it are left out.",
                "Where the future is visible, a second set of averages (reverse_) runs from the "
                "end, and both include the position itself, as in the paper's code.",
                "Without the relative position bias, and of the squared scores without laplace. "
                "relu2 divides logits by the number of visible keys of the chunk.",
                "The averages are a scan with a state of each channel, equal to the paper's "
                "convolution. With chunks they alone connect one chunk to the next. The paper's "
                "code needs whole chunks; here the last may be shorter.",
                "step, damping, input, output [states, width]: δ, α, β, γ of the paper; skip ω."}};
}

}  // namespace attn::variants
