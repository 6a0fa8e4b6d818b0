// lightning: linear attention whose state decays by a fixed number of each head, e^-s_h with the
// slopes s_h of ALiBi: retention without rotation and without its normalisations.
// Qin et al. 2024, arXiv:2401.04658, section 3; arXiv:2405.17381: S_t = e^-s·S_{t-1} + k_tᵀ·v_t,
// o_t = q_t·S_t/√d. Time about 4·n·d² + 172·n·d, memory n·d. No limit equals softmax.
#include <bit>
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/reference/states.h"

namespace attn::variants {
namespace {

// Of head h: 2^(-8·(h + 1)/n) for n heads, n a power of two; else those of the power below, and
// then every other one of the power above. Press et al. 2022, arXiv:2108.12409, section 3.
double slope_of(int64_t head, int64_t heads) {
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(heads)));
  const int64_t eighths = head < below ? 2 * (head + 1) : 2 * (head - below) + 1;
  return std::exp2(-4.0 * static_cast<double>(eighths) / static_cast<double>(below));
}

class Lightning final : public Attention {
 public:
  explicit Lightning(const AttentionConfig& config)
      : Attention(config), log_decay_({config.heads}) {
    const double factor = params().number("slope_factor");
    for (int64_t h = 0; h < config.heads; ++h)
      log_decay_[h] = static_cast<real>(-factor * slope_of(h, config.heads));
  }

 private:
  double tau() const { return 1 / std::sqrt(static_cast<double>(config().head_dim)); }

  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return chunked_attention({.q = q, .k = k, .v = v, .log_decay = Var(log_decay_)},
                             {.kv_lengths = mask.kv_lengths, .scale = tau()});
  }
  Cost do_cost(const AttentionShape& s) const override { return chunked_cost(s, Decay::head); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return state_decoder(
        position, capacity,
        {.scale = tau(),
         .prepare = [dim = position[3], log_decay = log_decay_](const StateRows& x) {
           std::fill_n(x.decay, dim, std::exp(log_decay[x.head]));
         }});
  }

  Tensor log_decay_;  // [heads]
};

oracle::Array lightning_reference(const ReferenceInputs& x) {
  // ALiBi's list of slopes: a geometric sequence from 2^(-8/n) on; where n is no power of two, the
  // heads beyond the largest power take every other slope of the next power.
  std::vector<double> slopes;
  int64_t power = 1;
  while (2 * power <= x.q.heads) power *= 2;
  for (int64_t h = 1; h <= power; ++h)
    slopes.push_back(std::pow(2.0, -8.0 * static_cast<double>(h) / static_cast<double>(power)));
  for (int64_t h = 1; h <= 2 * power; h += 2)
    slopes.push_back(std::pow(2.0, -4.0 * static_cast<double>(h) / static_cast<double>(power)));
  const double factor = x.params().number("slope_factor");
  oracle::Array out = oracle::state_outputs(
      x.q, x.k, x.v,
      {.log_decay = [&](auto, auto h, auto,
                        auto) { return -factor * slopes[static_cast<size_t>(h)]; }},
      x.mask.kv_lengths, x.rows);
  for (double& number : out.x) number /= std::sqrt(static_cast<double>(x.q.dim));
  return out;
}

}  // namespace

VariantInfo lightning() {
  return {
      .name = "lightning",
      .family = "gated",
      .summary = "linear attention with a fixed decay of each head; causal always",
      .paper = "Qin et al. 2024, arXiv:2401.04658, section 3",
      .cost_formula = "4·n·d² FLOPs and about 172·n·d inside tiles of 64; memory n·d",
      .traits = {.causal = true, .linear_time = true, .decode = true},
      .params = {{"slope_factor", 1.0, "of the slopes; of layer l of L the paper has 1 - l/(L - 1)",
                  0.0, 1e6}},
      .make = make_as<Lightning>,
      .reference = lightning_reference,
      .always_causal = [](const Params&) { return true; },
      .notes = {"Decays e^-s_h of head h, with ALiBi's slopes s_h times slope_factor. The mixer "
                "alone, unless block=paper: without silu of the projections, and without the norm "
                "and the gate of the output. Instead of the norm, which no factor changes, outputs "
                "are scaled by 1/√d."},
      .block = LayerBlock{.silu_queries = true,
                          .silu_keys = true,
                          .silu_values = true,
                          .norm = LayerBlock::Norm::layer,
                          .gate = LayerBlock::Gate::sigmoid,
                          .gate_rank = -1,
                          .notes = {"Qin et al. 2024, section 3; OpenNLPLab/lightning-attention, "
                                    "examples/module/tnl_attn.py: silu of the projections, a norm "
                                    "of all heads, a sigmoid gate through head_dim numbers."}}};
}

}  // namespace attn::variants
