// log_linear: log-linear attention on Mamba-2's decay: the past is read in blocks of 1, 2, 4, …
// positions, each with a weight of its own. Guo et al. 2025, arXiv:2506.04761, section 3: o_t =
// Σ_l λ_t^(l)·q_t·S_t^(l), the levels l of level_attention.h, S^(l) with Mamba-2's a = exp(-exp(
// A_log)·Δ) and Δ·v, λ = softplus(levels). Time about n·d²·(2 + log2(n/64)), memory 2·n·d.
#include "core/base/check.h"
#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/layer_blocks.h"
#include "variants/chunked/level_attention.h"
#include "variants/chunked/level_decoder.h"
#include "variants/reference/levels.h"

namespace attn::variants {
namespace {

std::string too_long(int64_t len, int64_t levels) {
  return fmt::format("{} positions have {} levels, and `levels` is {}", len, levels_of(len),
                     levels);
}

class LogLinear final : public GatedAttention {
 public:
  explicit LogLinear(const AttentionConfig& config)
      : GatedAttention(config),
        levels_(params().integer("levels")),
        a_log_(weight("A_log", decay_rates(config, 1))) {
    check(config.max_len);
  }

 private:
  void check(int64_t len) const {
    ATTN_CHECK(levels_of(len) <= levels_, "log_linear: {}", too_long(len, levels_));
  }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    const Var delta = zero_padding(softplus(zero_padding(gates[0], lengths)), lengths);
    const Var rate = scale(exponential(a_log_), -1);  // [heads]
    return level_attention({.q = q,
                            .k = zero_padding(k, lengths),
                            .v = multiply(zero_padding(v, lengths), delta),
                            .log_decay = matmul(delta, reshape(rate, {config().heads, 1, 1})),
                            .weights = softplus(zero_padding(gates[1], lengths))});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = level_cost(s, levels_);
    const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
    const double values = rows * static_cast<double>(s.head_dim);
    const double weights = rows * static_cast<double>(levels_);
    cost.flops += 2 * rows, cost.backward_flops += 4 * rows;  // of the log-decays
    cost.bytes += sizeof(real) * (2 * values + 2 * weights + 5 * rows);
    cost.peak_bytes += sizeof(real) * (values + weights + 2 * rows);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    check(capacity);
    return level_decoder(position, capacity, a_log_, levels_);
  }

  int64_t levels_;
  Var a_log_;  // [heads]
};

std::vector<GateInput> log_linear_gates(const AttentionConfig& config) {
  GateInput gate = decay_gate(config, 1, 0);
  gate.help = "the step Δ before its softplus";
  return {gate,
          {.name = "levels",
           .help = "the weight of each level before its softplus",
           .width = config.params.integer("levels"),
           .read = levels_of}};
}

oracle::Array log_linear_reference(const ReferenceInputs& x) {
  const oracle::Array delta = oracle::of_gates(
      x.gates[0], x.mask.kv_lengths, [](int64_t, double gate) { return oracle::softplus(gate); });
  return oracle::level_attention(x.q, x.k, x.v, log_decay_reference(x, x.gates[0]), delta,
                                 oracle::level_weights(x.gates[1], x.mask.kv_lengths),
                                 x.mask.kv_lengths, x.rows);
}

LayerBlock log_linear_layer() {
  LayerBlock layer =
      mamba2_layer({"Guo et al. 2025, section 3.4: the block of Mamba-2 around it; fla, "
                    "layers/log_linear_mamba2.py with its model's configuration. A_log "
                    "starts as in mamba2; that code has log 1 to log heads."});
  layer.replaces_steps = true;
  return layer;
}

}  // namespace

VariantInfo log_linear() {
  return {
      .name = "log_linear",
      .family = "gated",
      .summary = "Mamba-2 with a state for each power of two of the past",
      .paper = "Guo et al. 2025, arXiv:2506.04761, section 3",
      .cost_formula =
          "n·d²·(2 + log2(n/64)) FLOPs and about 172·n·d inside chunks of 64; memory 2·n·d; in a "
          "layer 2·n·width·heads·(1 + levels) more",
      .traits = {.causal = true, .decode = true, .gated = true},
      .params = {{"levels", 17, "of weights: at most 2^(levels - 1) positions", 1, 40}},
      .make = make_as<LogLinear>,
      .reference = log_linear_reference,
      .skip_reason = [](const AttentionShape& shape,
                        const Params& params) -> std::optional<std::string> {
        const int64_t levels = params.integer("levels");
        if (levels_of(shape.kv_len) <= levels) return std::nullopt;
        return too_long(shape.kv_len, levels);
      },
      .gates = log_linear_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = {"The mixer alone, unless block=paper, as mamba2. The paper's factor of each level, "
                "softplus(L·x), which starts at 1, belongs to the layer's projection here.",
                "Levels depend on the position itself: a shifted sequence has other outputs. "
                "Padding keeps its positions, writes and decays nothing.",
                "Where query heads share keys and values (kv_heads), each still has its own gates, "
                "and with them states of its own.",
                "A_log [heads]: the states of a head decay by exp(-exp(A_log)·Δ) a step."},
      .block = log_linear_layer()};
}

}  // namespace attn::variants
