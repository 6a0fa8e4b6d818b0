// gated_rfa: random feature attention whose state forgets by a gate of the position: S_t =
// g_t·S_{t-1} + (1 - g_t)·φ(k_t)ᵀv_t, and its divisor alike. Peng et al. 2021, arXiv:2103.02143,
// section 3.2. Time O(n·m·d) for m = 2·directions features, memory n·d + m·d.
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/features/features.h"
#include "variants/features/wave_attention.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

class GatedRfa final : public WaveAttention<GatedAttention> {
 public:
  explicit GatedRfa(const AttentionConfig& config) : WaveAttention(config) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    return linear_attention(
        q, k, v, {.causal = true, .kv_lengths = mask.kv_lengths, .map = map(), .gate = gates[0]});
  }
  Cost do_cost(const AttentionShape& given) const override {
    AttentionShape shape = given;
    shape.causal = true;
    return cost_of_waves(shape, true);
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, map(), true);
  }
};

std::vector<GateInput> forget_gates(const AttentionConfig& config) {
  return {{.name = "forget",
           .help = "x of g = σ(x), the share of the state that a position keeps",
           .width = 1,
           .bias = std::vector<double>(static_cast<size_t>(config.heads), 0.0)}};
}

oracle::Array gated_rfa_reference(const ReferenceInputs& x) {
  // Of key j for any query: the sum of log g up to the query is the same for all of its keys.
  const oracle::Array kept = oracle::of_gates(
      x.gates[0], x.mask.kv_lengths, [](int64_t, double gate) { return -oracle::softplus(-gate); });
  oracle::Array scales = kept;
  for (int64_t b = 0; b < kept.batch; ++b)
    for (int64_t h = 0; h < kept.heads; ++h) {
      double sum = 0;
      for (int64_t j = 0; j < x.valid(b); ++j) {
        sum += kept.at(b, h, j, 0);
        scales.at(b, h, j, 0) = kept.at(b, h, j, 0) - x.gates[0].at(b, h, j, 0) - sum;
      }
    }
  const auto log_scale = [&](int64_t b, int64_t h, int64_t, int64_t j) {
    return scales.at(b, h, j, 0);
  };
  oracle::Visibility visible = x.visible();
  visible.causal = true;
  return wave_reference(x, visible, log_scale);
}

}  // namespace

VariantInfo gated_rfa() {
  return {
      .name = "gated_rfa",
      .family = "kernel",
      .summary = "random feature attention whose state forgets by a gate",
      .paper = "Peng et al. 2021, arXiv:2103.02143, section 3.2",
      .cost_formula =
          "4·n·m·(d+1) + 2·n·m·d + 86·n·(m+d) FLOPs for m = 2·directions features; memory n·d, "
          "and about m·(d + 192) a thread",
      .traits =
          {.causal = true, .linear_time = true, .random = true, .decode = true, .gated = true},
      .params = {{"directions", 256,
                  "random directions of each head; twice as many features. With fewer the "
                  "divisor is near 0 too often",
                  256, 65536},
                 {"orthogonal", false, "directions orthogonal in blocks of head_dim"}},
      .make = make_as<GatedRfa>,
      .reference = gated_rfa_reference,
      .gates = forget_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = {
          "The authors' released code has no gate: this is the paper's formula. The start of "
          "the gate's bias is 0 here; the paper names none.",
          "The authors' release has 64 directions. With so few, divisors come so near to 0 that "
          "float32 does not tell: decoding and the forward pass differ by more than rounding.",
          "Divisors are relative to the largest weight that gates leave a visible key; nearer "
          "to 0 than 0.001 they are replaced, as those of rfa.",
          "Where query heads share keys and values (kv_heads), each still has its own gates, "
          "and with them a state of its own. A head is not divided among threads."}};
}

}  // namespace attn::variants
