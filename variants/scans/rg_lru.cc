// rg_lru: the real-gated linear recurrent unit of Griffin: h_t = a_t ⊙ h_{t-1} + √(1 - a_t²) ⊙
// (σ(i_t) ⊙ x_t) with a_t = exp(-8·softplus(Λ)·σ(r_t)). De et al. 2024, arXiv:2402.19427, section
// 2.4, eqs. 1-4. Time 6·n·d and an exponential of each channel and position, memory 3·n·d.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/ops/ops.h"
#include "core/simd/gated_step.h"
#include "core/simd/row_ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/reference/state_space.h"
#include "variants/scans/scan_decoder.h"
#include "variants/scans/scans.h"

namespace attn::variants {
namespace {

constexpr double kSharpness = 8;  // the paper's c

// 8·softplus(Λ) [heads, dim]: -log a of an open gate.
Tensor rates_of(const Tensor& lambda) {
  const Tensor rates(lambda.shape());
  softplus_row(rates.size(), lambda.data(), 1, static_cast<real>(kSharpness), rates.data());
  return rates;
}

// Calls body(head, t, offset) of each position of numbers [batch, heads, len, dim], a head's
// positions in order; heads of all sequences are counted.
template <class Body>
void over_positions(const Shape& s, const Body& body) {
  run_tasks(s[0] * s[1], 0, [&](int64_t head, real*) {
    const Mark mark(Part::recurrence);
    for (int64_t t = 0; t < s[2]; ++t) body(head, t, (head * s[2] + t) * s[3]);
  });
}

Tensor wanted_or_scratch(const Tensor& grad, const Shape& shape) {
  return grad.defined() ? grad : Tensor::zeros(shape);
}

// dΛ of the gradients of the rates [batch · heads, dim].
void add_lambda_grads(const Tensor& of_rates, const Tensor& lambda, const Tensor& to) {
  const Tensor slopes(lambda.shape());
  sigmoid_row(slopes.size(), lambda.data(), slopes.data());
  for (int64_t i = 0; i < of_rates.size(); ++i) {
    const int64_t channel = i % lambda.size();
    to[channel] += static_cast<real>(kSharpness) * slopes[channel] * of_rates[i];
  }
}

// -log a: the steps of the scan, whose states then decay by e^-step.
Var steps_of(const Var& gate, const Var& lambda) {
  const Tensor gates = gate.value(), lambdas = lambda.value(), steps(gates.shape()),
               rates = rates_of(lambdas);
  const int64_t heads = gates.dim(1), dim = gates.dim(3);
  over_positions(gates.shape(), [&](int64_t head, int64_t, int64_t at) {
    gated_steps(dim, rates.data() + head % heads * dim, gates.data() + at, steps.data() + at);
  });
  return custom_op(steps, {gate, lambda}, [=](const Tensor& g, std::span<Tensor> grads) {
    const Tensor of_gates = wanted_or_scratch(grads[0], gates.shape()),
                 of_rates = Tensor::zeros({gates.dim(0) * heads, dim});
    over_positions(gates.shape(), [&](int64_t head, int64_t, int64_t at) {
      gated_steps_backward(dim, rates.data() + head % heads * dim, gates.data() + at, g.data() + at,
                           of_gates.data() + at, of_rates.data() + head * dim);
    });
    if (grads[1].defined()) add_lambda_grads(of_rates, lambdas, grads[1]);
  });
}

// What the scan reads: gain · σ(i) · x over the step, by which it multiplies.
Var written_of(const Var& x, const Var& gate, const Var& step) {
  const Tensor rows = x.value(), gates = gate.value(), steps = step.value(), to(rows.shape());
  const int64_t dim = rows.dim(3);
  const auto row_at = [=](int64_t t, int64_t at) {
    return GatedInput{rows.data() + at, gates.data() + at, steps.data() + at, t == 0};
  };
  over_positions(rows.shape(), [&](int64_t, int64_t t, int64_t at) {
    gated_inputs(dim, row_at(t, at), to.data() + at);
  });
  return custom_op(to, {x, gate, step}, [=](const Tensor& g, std::span<Tensor> grads) {
    const Tensor of_x = wanted_or_scratch(grads[0], rows.shape()),
                 of_gates = wanted_or_scratch(grads[1], rows.shape()),
                 of_steps = wanted_or_scratch(grads[2], rows.shape());
    over_positions(rows.shape(), [&](int64_t, int64_t t, int64_t at) {
      gated_inputs_backward(dim, row_at(t, at), g.data() + at, of_x.data() + at,
                            of_gates.data() + at, of_steps.data() + at);
    });
  });
}

// One position of one head, in parts of a fixed width. The state: the channels, and whether a
// position came before.
void advance(int64_t dim, const real* rates, const ScanStep& s) {
  constexpr int64_t kPart = 64;
  std::array<real, kPart> steps, written;
  for (int64_t c = 0; c < dim; c += kPart) {
    const int64_t n = std::min(kPart, dim - c);
    gated_steps(n, rates + c, s.gates[0] + c, steps.data());
    gated_inputs(n, {s.x + c, s.gates[1] + c, steps.data(), s.state[dim] == 0}, written.data());
    for (int64_t i = 0; i < n; ++i) written[i] *= steps[i];
    exp_row(n, steps.data(), -1, 0, steps.data());
    for (int64_t i = 0; i < n; ++i) s.state[c + i] = steps[i] * s.state[c + i] + written[i];
  }
  s.state[dim] = 1;
  if (s.out) std::copy_n(s.state, dim, s.out);
}

class RgLru final : public GatedAttention {
 public:
  explicit RgLru(const AttentionConfig& config)
      : GatedAttention(config),
        lambda_(weight("Lambda", start(config))),
        one_rate_(Var(Tensor::zeros({config.heads, 1, config.head_dim}))) {}

 private:
  // Factors of open gates uniform in [0.9, 0.999], section 2.4.
  static Tensor start(const AttentionConfig& config) {
    Rng stream = rng(config.seed, "Lambda");
    const Tensor lambda({config.heads, config.head_dim});
    for (real& value : lambda.values()) {
      const double step = -std::log(stream.uniform(0.9, 0.999)) / kSharpness;
      value = static_cast<real>(std::log(std::expm1(step)));  // softplus(value) = step
    }
    return lambda;
  }

  Var do_gated_forward(const Var&, const Var&, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const Var steps = steps_of(zero_padding(gates[0], mask.kv_lengths), lambda_);
    const Var written = written_of(zero_padding(v, mask.kv_lengths),
                                   zero_padding(gates[1], mask.kv_lengths), steps);
    const Var ones(Tensor::full(v.shape().with(3, 1), 1));
    return selective_scan({written, steps, ones, ones, one_rate_}, mask.kv_lengths);
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = selective_cost(s, 1);
    const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
    const double numbers = sizeof(real) * rows * static_cast<double>(s.head_dim);
    cost.bytes += 5 * numbers;
    cost.peak_bytes += 2 * numbers + sizeof(real) * rows;
    cost.state_bytes += sizeof(real) * static_cast<double>(s.batch * s.heads);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t dim = position[3];
    return scan_decoder(position, capacity,
                        {.state_reals = dim + 1,
                         .flops = 6,
                         .gate_widths = {dim, dim},
                         .step = [dim, rates = rates_of(lambda_.value())](const ScanStep& s) {
                           advance(dim, rates.data() + s.head * dim, s);
                         }});
  }

  Var lambda_;    // Λ [heads, head_dim]
  Var one_rate_;  // log 1 [heads, 1, head_dim]: a state decays by e^-step
};

std::vector<GateInput> rg_lru_gates(const AttentionConfig& config) {
  const std::vector<double> zeros(static_cast<size_t>(config.heads * config.head_dim), 0.0);
  return {{.name = "recurrence",
           .help = "r of the recurrence gate σ(r): 0 keeps the state, 1 lets it decay the most",
           .width = config.head_dim,
           .bias = zeros},
          {.name = "input",
           .help = "i of the input gate σ(i)",
           .width = config.head_dim,
           .bias = zeros}};
}

// One position, channel after channel.
oracle::Array rg_lru_reference(const ReferenceInputs& x) {
  oracle::Array y(x.v.batch, x.v.heads, x.v.len, x.v.dim);
  for (int64_t b = 0; b < y.batch; ++b)
    for (int64_t h = 0; h < y.heads; ++h)
      for (int64_t c = 0; c < y.dim; ++c) {
        const double rate = oracle::softplus(x.weights[0].at(0, 0, h, c));
        double state = 0;
        for (int64_t t = 0; t < x.valid(b); ++t) {
          const double recurrence = oracle::logistic(x.gates[0].at(b, h, t, c)),
                       input = oracle::logistic(x.gates[1].at(b, h, t, c));
          const double log_a = -8 * rate * recurrence;
          const double kept = t == 0 ? 1 : std::sqrt(-std::expm1(2 * log_a));
          state = std::exp(log_a) * state + kept * input * x.v.at(b, h, t, c);
          y.at(b, h, t, c) = state;
        }
      }
  return y;
}

}  // namespace

VariantInfo rg_lru() {
  return {
      .name = "rg_lru",
      .family = "state space",
      .summary = "a state of each channel that decays as a gate says: Griffin's recurrence",
      .paper = "De et al. 2024, arXiv:2402.19427, section 2.4, eqs. 1-4",
      .cost_formula =
          "6·n·d FLOPs and n·d exponentials; memory 4·n·d; in a layer 4·n·width·heads·d more",
      .traits = kGatedTraits,
      .params = {},
      .make = make_as<RgLru>,
      .reference = rg_lru_reference,
      .reads = [](const Params&) { return VariantInfo::Reads{.queries = false, .keys = false}; },
      .gates = rg_lru_gates,
      .always_causal = [](const Params&) { return true; },
      .notes =
          {"The mixer alone, unless block=paper. A layer projects the gates by whole matrices; "
           "Griffin's are block-diagonal, a block a head.",
           "Lambda [heads, head_dim]: Λ, which starts where an open recurrence gate gives "
           "factors uniform in [0.9, 0.999], as the paper says. google-deepmind/recurrentgemma "
           "starts where the factor's 8th root is in that range: its states decay faster.",
           "The first position is written whole, without √(1 - a²), as in "
           "google-deepmind/recurrentgemma."},
      .block =
          LayerBlock{
              .convolution = {.kernel = 4, .bias = true},
              .projection_biases = true,
              .gates_of_values = true,
              .gate = LayerBlock::Gate::gelu,
              .gate_bias = true,
              .notes = {
                  "De et al. 2024, section 2.3 and figure 2c; google-deepmind/recurrentgemma: two "
                  "branches, gelu of the one times a convolution of 4 and the recurrence of the "
                  "other, all projections with biases. That gelu is the approximation by tanh, "
                  "this one is exact; the feed-forward of the paper is gated, this one is "
                  "plain."}}};
}

}  // namespace attn::variants
