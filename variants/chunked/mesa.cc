// mesa: the mesa layer of MesaNet: each position solves a ridge regression of the values on the
// keys so far and applies it to its query. von Oswald et al. 2025, arXiv:2506.05233, section 3:
// o_t = q_t·(H_t + diag(λ))⁻¹·R_t, H_t = a_t·H_{t-1} + β_t·k_tᵀ·k_t, R_t = a_t·R_{t-1} +
// β_t·k_tᵀ·v_t, a = σ(decay), β = σ(beta), q and k of length 1, λ = softplus(p) + 0.25. Time about
// n·iterations·(2·d² + 100·d) + 6·n·d², memory 4·n·d. No limit equals softmax.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/delta_rule.h"
#include "variants/chunked/key_rows.h"
#include "variants/chunked/mesa_decoder.h"
#include "variants/chunked/mesa_solver.h"
#include "variants/reference/mesa.h"

namespace attn::variants {
namespace {

const double kStart = std::log(std::expm1(1 - kLeastRidge));  // of p: λ = 1

class Mesa final : public GatedAttention {
 public:
  explicit Mesa(const AttentionConfig& config)
      : GatedAttention(config),
        iterations_(params().integer("iterations")),
        ridge_(weight("ridge",
                      Tensor::full({config.heads, config.head_dim}, static_cast<real>(kStart)))) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    const Var strength = sigmoid(zero_padding(gates[1], lengths));  // β [batch, heads, len, 1]
    const Var keys = unit_rows(k, 1, lengths);
    const LogDecay rule = LogDecay::of_sigmoid(1);
    const Var solved = mesa_solve({.q = unit_rows(q, 1, {}),
                                   .k = keys,
                                   .written = multiply(keys, strength),
                                   .decay = gates[0],
                                   .rule = rule,
                                   .lambda = shift(softplus(ridge_), kLeastRidge)},
                                  iterations_, lengths);
    return chunked_attention({.q = solved,
                              .k = keys,
                              .v = multiply(zero_padding(v, lengths), strength),
                              .log_decay = gates[0],
                              .rule = rule},
                             {.kv_lengths = lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    const Cost solver = mesa_solve_cost(s, iterations_);
    Cost cost = chunked_cost(s, Decay::step);
    const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
    const double numbers = rows * static_cast<double>(s.head_dim), size = sizeof(real);
    cost.flops += solver.flops, cost.backward_flops += solver.backward_flops;
    cost.bytes += solver.bytes + size * (8 * numbers + 3 * rows);
    // Keys and strengths, and beside them q, w, x and λ, or x, β·v and the output.
    const auto lambda = static_cast<double>(s.heads * s.head_dim);
    cost.peak_bytes =
        size * (numbers + rows) + std::max(size * (3 * numbers + lambda) + solver.peak_bytes,
                                           size * 2 * numbers + cost.peak_bytes);
    cost.state_bytes *= 2;
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return mesa_decoder(position, capacity, ridge_, iterations_);
  }

  int64_t iterations_;
  Var ridge_;  // p [heads, head_dim]
};

std::vector<GateInput> mesa_gates(const AttentionConfig& config) {
  const std::vector<double> bias(static_cast<size_t>(config.heads), 0);
  GateInput beta = beta_gate();
  beta.bias = bias;
  return {{.name = "decay", .help = "x of the decay σ(x)", .bias = bias}, beta};
}

oracle::Array mesa_reference(const ReferenceInputs& x) {
  return oracle::mesa_attention(oracle::unit_rows(x.q, 1e-6), oracle::unit_rows(x.k, 1e-6), x.v,
                                x.gates[0], x.gates[1], x.weights[0], 0.25, x.mask.kv_lengths,
                                x.rows);
}

}  // namespace

VariantInfo mesa() {
  return {
      .name = "mesa",
      .family = "gated",
      .summary = "a ridge regression of values on keys at each position",
      .paper = "von Oswald et al. 2025, arXiv:2506.05233, section 3",
      .cost_formula =
          "n·iterations·(2·d² + about 100·d) + 6·n·d² FLOPs; memory 4·n·d; in a layer "
          "4·n·width·heads more",
      .traits = kGatedTraits,
      .params = {{"iterations", 30,
                  "of conjugate gradients, for each position; the gradient is that of a solved "
                  "system, which fewer leave unsolved",
                  20, 1000}},
      .make = make_as<Mesa>,
      .reference = mesa_reference,
      .gates = mesa_gates,
      .always_causal = [](const Params&) { return true; },
      .notes =
          {"The mixer alone, unless block=paper: without the paper's short convolutions of queries "
           "and keys and the norm of the output. Queries and keys are divided by √(|x|² + 1e-6).",
           "Every position takes the same number of iterations, from 0, in training and decoding. "
           "Popular code adds 1e-5 to both divisors, which stops convergence at a relative error "
           "of about 1e-3, and starts decoding elsewhere than training.",
           "Gradients are those of the linear system, not of the iterations: exact as far as it is "
           "solved.",
           "ridge [heads, head_dim]: λ = softplus(ridge) + 0.25, 1 at the start.",
           "Where query heads share keys and values (kv_heads), each still has its own gates, and "
           "with them states of its own."},
      .block = LayerBlock{
          .convolution = {.kernel = 4, .values = false},
          .silu_queries = true,
          .silu_keys = true,
          .norm = LayerBlock::Norm::rms_of_heads,
          .notes = {
              "von Oswald et al. 2025, section 3; defaults of fla, layers/mesa_net.py: convolution "
              "of 4 and silu of queries and keys, the norm of each head, no output gate."}}};
}

}  // namespace attn::variants
