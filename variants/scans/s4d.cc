// s4d: a diagonal state space, the same at every position: S4D-Lin with zero-order hold. Gu et al.
// 2022, arXiv:2206.11893, eqs. 1-3 and 9. Computed by its recurrence: time 6·n·d·states for
// `states` numbers in conjugate pairs, memory n·d.
#include <cmath>
#include <numbers>

#include "variants/api/variant_info.h"
#include "variants/reference/state_space.h"
#include "variants/scans/scans.h"

namespace attn::variants {
namespace {

class S4d final : public Attention {
 public:
  explicit S4d(const AttentionConfig& config)
      : Attention(config),
        log_step_(weight("log_dt", start_steps(config))),
        log_decay_(weight("log_A_real", start_poles(config, std::log(0.5), 0))),
        frequency_(weight("A_imag", start_poles(config, 0, std::numbers::pi))),
        real_(normal_weight("C_real", log_decay_.shape(), std::sqrt(0.5))),
        imaginary_(normal_weight("C_imag", log_decay_.shape(), std::sqrt(0.5))) {}

 private:
  Var taps() const {
    return zero_order_hold({log_step_, log_decay_, frequency_, real_, imaginary_});
  }

  Var do_forward(const Var&, const Var&, const Var& v, const Mask& mask) const override {
    return constant_scan(v, taps(), mask.kv_lengths);
  }
  Cost do_cost(const AttentionShape& s) const override {
    return constant_cost(s, log_decay_.dim(1));
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const NoGrad no_grad;
    return constant_decoder(position, capacity, taps().value());
  }

  Var log_step_;                                  // [heads, head_dim]
  Var log_decay_, frequency_, real_, imaginary_;  // [heads, pairs, head_dim]
};

}  // namespace

VariantInfo s4d() {
  return {
      .name = "s4d",
      .family = "state space",
      .summary = "linear states of each channel that decay and turn at their own pace",
      .paper = "Gu et al. 2022, arXiv:2206.11893, eqs. 1-3 and 9: S4D-Lin, zero-order hold",
      .cost_formula = "6·n·d·states FLOPs; memory n·d",
      .traits = {.causal = true, .linear_time = true, .decode = true},
      .params = {{"states", 64, "states of each channel, in conjugate pairs", 2, 1024}},
      .make = make_as<S4d>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::s4d(x.v, x.weights, {x.mask.kv_lengths}, x.rows);
          },
      .skip_reason = why_odd_states,
      .reads = [](const Params&) { return VariantInfo::Reads{.queries = false, .keys = false}; },
      .always_causal = [](const Params&) { return true; },
      .notes = {"The mixer alone, unless block=paper: without the paper's skip connection D·x, "
                "activation and gated output projection. A layer projects x and the output.",
                "Weights of one of each pair: A = -exp(log_A_real) + i·A_imag, Δ = exp(log_dt), C "
                "with B = 1 inside."},
      .block = LayerBlock{.projects_values = false,
                          .skip = LayerBlock::Skip::channel,
                          .skip_is_drawn = true,
                          .gelu = true,
                          .glu = true,
                          .notes = {"Gu et al. 2022; state-spaces/s4, models/s4/s4d.py: D·x, gelu, "
                                    "and a gated output projection. It projects no input."}}};
}

}  // namespace attn::variants
