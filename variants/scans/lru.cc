// lru: the linear recurrent unit: complex states h = a⊙h + γ⊙(B·x) of the layer's input, with a =
// exp(-e^ν + i·e^θ), and Re(C·h). Orvieto et al. 2023, arXiv:2303.06349, eqs. 2-8. Time
// 8·n·width² + 10·n·width, memory 4·n·width.
#include <algorithm>
#include <cmath>
#include <complex>

#include "core/ops/ops.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/reference/state_space.h"
#include "variants/scans/scans.h"

namespace attn::variants {
namespace {

class Lru final : public Mixer {
 public:
  explicit Lru(const AttentionConfig& config)
      : Mixer(config),
        poles_(weight("poles", start_poles(config))),
        input_(normal_weight("B", {width(), 2 * width()}, 1 / std::sqrt(2.0 * size()))),
        output_(normal_weight("C", {2 * width(), width()}, 1 / std::sqrt(size()))) {}

 private:
  double size() const { return static_cast<double>(width()); }

  // |a|² uniform in [r_min², r_max²], the angle in [0, max_phase], γ = √(1 - |a|²).
  static Tensor start_poles(const AttentionConfig& config) {
    const int64_t n = config.heads * config.head_dim;
    const double low = config.params.number("r_min"), high = config.params.number("r_max"),
                 most = config.params.number("max_phase");
    Rng stream = rng(config.seed, "poles");
    const Tensor poles({3, n});
    for (int64_t j = 0; j < n; ++j) {
      const double square = high * high - (high * high - low * low) * stream.uniform();
      const double kept = std::clamp(square, 1e-12, 1 - 1e-6);  // logarithms of what is not 0
      poles[j] = static_cast<real>(std::log(-0.5 * std::log(kept)));
      poles[n + j] = static_cast<real>(std::log(most * (1 - stream.uniform())));
      poles[2 * n + j] = static_cast<real>(0.5 * std::log(1 - kept));
    }
    return poles;
  }

  // [3, width] as complex_scan() takes them.
  Var taps() const {
    const Tensor from = poles_.value(), to(from.shape());
    const int64_t n = width();
    const auto pole = [from, n](int64_t j) {
      return std::complex(-std::exp(static_cast<double>(from[j])),
                          std::exp(static_cast<double>(from[n + j])));
    };
    for (int64_t j = 0; j < n; ++j) {
      const std::complex<double> a = std::exp(pole(j));
      to[j] = static_cast<real>(a.real()), to[n + j] = static_cast<real>(a.imag());
      to[2 * n + j] = std::exp(from[2 * n + j]);
    }
    return custom_op(to, {poles_}, [n, pole, to](const Tensor& g, std::span<Tensor> grads) {
      for (int64_t j = 0; j < n; ++j) {
        const std::complex a(static_cast<double>(to[j]), static_cast<double>(to[n + j]));
        const std::complex of_a(static_cast<double>(g[j]), static_cast<double>(g[n + j]));
        const std::complex<double> of_pole = std::conj(a) * of_a;  // a = e^pole
        grads[0][j] += static_cast<real>(pole(j).real() * of_pole.real());
        grads[0][n + j] += static_cast<real>(pole(j).imag() * of_pole.imag());
        grads[0][2 * n + j] += to[2 * n + j] * g[2 * n + j];
      }
    });
  }

  Var do_mix(const Var& x, const Mask& mask) const override {
    // The inputs of the states end with this statement.
    const Var states =
        complex_scan(linear(zero_padding(x, mask.kv_lengths), input_, {}), taps(), mask.kv_lengths);
    return linear(states, output_, {});
  }

  Cost do_cost(const AttentionShape& s) const override {
    const double rows = static_cast<double>(s.batch * s.kv_len), states = rows * size();
    return {.flops = 8 * states * size() + kComplexFlops * states,
            .backward_flops = 16 * states * size() + kComplexBackwardFlops * states,
            .bytes = sizeof(real) * (10 * states + 4 * size() * size()),
            .peak_bytes = sizeof(real) * (4 * states + 3 * size()),
            .state_bytes = sizeof(real) * 2 * static_cast<double>(s.batch) * size()};
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const NoGrad no_grad;
    return complex_decoder(position, capacity, {taps().value(), input_.value(), output_.value()});
  }

  Var poles_;           // [3, width]: ν, θ, log γ
  Var input_, output_;  // B [width, 2·width], C [2·width, width]: real parts, imaginary parts
};

}  // namespace

VariantInfo lru() {
  return {
      .name = "lru",
      .family = "state space",
      .summary = "the linear recurrent unit: complex states that decay and turn",
      .paper = "Orvieto et al. 2023, arXiv:2303.06349, eqs. 2-8",
      .cost_formula = "8·n·width² + 10·n·width FLOPs; memory 4·n·width",
      .traits = {.causal = true, .linear_time = true, .decode = true, .mixer = true},
      .params = {{"r_min", 0.0, "least |a| at the start", 0, 0.9999},
                 {"r_max", 1.0, "largest |a| at the start; not below r_min", 1e-3, 1},
                 {"max_phase", 6.28, "largest angle of a at the start", 1e-6, 6.2832}},
      .make = make_as<Lru>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::lru(x.v, x.weights, {x.mask.kv_lengths}, x.rows);
          },
      .skip_reason = [](const AttentionShape&, const Params& params) -> std::optional<std::string> {
        if (params.number("r_min") <= params.number("r_max")) return std::nullopt;
        return "r_min is above r_max";
      },
      .always_causal = [](const Params&) { return true; },
      .notes = {"As many states as the layer is wide. B and C stand for W_v and W_o. No skip D·x.",
                "poles [3, width]: ν, θ and log γ of a = exp(-e^ν + i·e^θ)."},
      .block = LayerBlock{.projects_values = false,
                          .skip = LayerBlock::Skip::channel,
                          .skip_is_drawn = true,
                          .gelu = true,
                          .glu = true,
                          .notes = {"Orvieto et al. 2023, section 2 and appendix A; "
                                    "NicolasZucchet/minimal-LRU: D·x, gelu (exact; that code's is "
                                    "the approximation by tanh), and a gated output projection."}}};
}

}  // namespace attn::variants
