// mamba2: the state space dual (SSD) of Mamba-2: linear attention whose state decays by one number
// a head and step, which also scales the write. Dao and Gu 2024, arXiv:2405.21060, eqs. 2 and 16,
// with q, k, v for C, B, x: a = exp(-exp(A_log)·Δ), Δ = softplus(dt). Time about 4·n·d² +
// 172·n·d, memory n·d; nothing is normalised. No limit equals softmax.
#include "core/ops/ops.h"
#include "core/simd/row_ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/layer_blocks.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

class Mamba2 final : public GatedAttention {
 public:
  explicit Mamba2(const AttentionConfig& config)
      : GatedAttention(config), a_log_(weight("A_log", decay_rates(config, 1))) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const Var delta = softplus(zero_padding(gates[0], mask.kv_lengths));  // [batch, heads, len, 1]
    return chunked_attention({.q = q,
                              .k = k,
                              .v = multiply(zero_padding(v, mask.kv_lengths), delta),
                              .log_decay = gates[0],
                              .rule = LogDecay::of_steps(a_log_)},
                             {.kv_lengths = mask.kv_lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = chunked_cost(s, Decay::step);
    const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
    const double values = rows * static_cast<double>(s.head_dim);
    cost.bytes += sizeof(real) * (2 * values + 3 * rows);  // Δ·v, and Δ from the gate
    cost.peak_bytes += sizeof(real) * (values + rows);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t dim = position[3];
    return state_decoder(position, capacity,
                         {.gate_widths = {1}, .prepare = [dim, a_log = a_log_](const StateRows& x) {
                            set_decay(x, dim, 1, LogDecay::of_steps(a_log));
                            real delta = 0;
                            softplus_row(1, x.gates[0], 1, 1, &delta);
                            for (int64_t c = 0; c < dim; ++c) x.v[c] *= delta;
                          }});
  }

  Var a_log_;  // [heads]
};

std::vector<GateInput> mamba2_gates(const AttentionConfig& config) {
  GateInput gate = decay_gate(config, 1, 0);
  gate.help = "the step Δ before its softplus";
  return {gate};
}

oracle::Array mamba2_reference(const ReferenceInputs& x) {
  const std::vector<int64_t>& lengths = x.mask.kv_lengths;
  const oracle::Array delta = oracle::of_gates(
      x.gates[0], lengths, [](int64_t, double gate) { return oracle::softplus(gate); });
  return oracle::decayed_attention(x.q, x.k, x.v, log_decay_reference(x, x.gates[0]), delta, 1,
                                   lengths, x.rows);
}

}  // namespace

VariantInfo mamba2() {
  return {.name = "mamba2",
          .family = "gated",
          .summary = "the state space dual of Mamba-2: one decay a head and step",
          .paper = "Dao and Gu 2024, arXiv:2405.21060, eqs. 2 and 16",
          .cost_formula =
              "4·n·d² FLOPs and about 172·n·d inside tiles of 64; memory 2·n·d; in a layer "
              "2·n·width·heads more",
          .traits = kGatedTraits,
          .params = {},
          .make = make_as<Mamba2>,
          .reference = mamba2_reference,
          .gates = mamba2_gates,
          .always_causal = [](const Params&) { return true; },
          .notes =
              {"The mixer alone, unless block=paper: without the paper's short convolution, skip "
               "connection D·x, norm and output gate; a state of head_dim·head_dim numbers a head.",
               "Where query heads share keys and values (kv_heads), each still has its own gates, "
               "and with them a state of its own.",
               "A_log [heads]: the state of a head decays by exp(-exp(A_log)·Δ) a step."},
          .block = mamba2_layer(
              {"Dao and Gu 2024, section 7 and figure 6; defaults of state-spaces/mamba, "
               "modules/mamba2.py: expansion 2, one group, convolution of 4 with a bias "
               "over x, B and C, the norm after the gate.",
               "B and C have head_dim numbers; the code has 128 beside heads of 64."})};
}

}  // namespace attn::variants
