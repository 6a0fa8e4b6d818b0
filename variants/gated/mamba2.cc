// mamba2: the state space dual (SSD) of Mamba-2: linear attention whose state decays by one number
// a head and step, which also scales the write. Dao and Gu 2024, arXiv:2405.21060, eqs. 2 and 16,
// with q, k, v for C, B, x: a = exp(-exp(A_log)·Δ), Δ = softplus(dt). Time 5·n·d², memory n·d;
// nothing is normalised. No limit equals softmax.
#include <algorithm>
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/gated/decayed_step.h"
#include "variants/gated/gated.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

class Mamba2 final : public GatedAttention {
 public:
  explicit Mamba2(const AttentionConfig& config)
      : GatedAttention(config), a_log_(weight("A_log", start(config))) {}

 private:
  // log U(1, 16), of each head.
  static Tensor start(const AttentionConfig& config) {
    Rng stream = rng(config.seed, "A_log");
    const Tensor a_log({config.heads});
    for (real& value : a_log.values()) value = static_cast<real>(std::log(stream.uniform(1, 16)));
    return a_log;
  }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const int64_t heads = q.dim(1), len = q.dim(2);
    const Var rates =
        multiply(Var(Tensor::full({heads, len}, -1)), reshape(exponential(a_log_), {heads, 1}));
    const Var delta = softplus(zero_padding(gates[0], mask.kv_lengths));  // [batch, heads, len, 1]
    const Var log_decay = multiply(delta, reshape(rates, {heads, len, 1}));
    const Var values = multiply(zero_padding(v, mask.kv_lengths), delta);
    return decayed_attention(q, k, values, log_decay, 1, mask.kv_lengths);
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = decayed_cost(s);
    const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
    const double values = rows * static_cast<double>(s.head_dim);
    cost.bytes += sizeof(real) * (2 * values + 6 * rows);  // Δ·v, and Δ and g from the gate
    cost.peak_bytes += sizeof(real) * (values + 2 * rows + static_cast<double>(s.heads * s.kv_len));
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t dim = position[3];
    return decayed_decoder(position, capacity, 1, 1,
                           [dim, a_log = a_log_](int64_t head, const real* gate, real* decay) {
                             const real delta = softplus_of(*gate);
                             std::fill_n(decay, dim,
                                         std::exp(-std::exp(a_log.value()[head]) * delta));
                             return delta;
                           });
  }

  Var a_log_;
};

// Steps Δ of the start log-uniform in [1e-3, 0.1], through the inverse of softplus.
std::vector<GateInput> mamba2_gates(const AttentionConfig& config) {
  Rng stream = rng(config.seed, "dt bias");
  std::vector<double> bias(static_cast<size_t>(config.heads));
  for (double& value : bias) {
    const double step = std::exp(stream.uniform(std::log(1e-3), std::log(0.1)));
    value = step + std::log(-std::expm1(-step));
  }
  return {{.name = "dt", .help = "the step Δ before its softplus", .bias = bias}};
}

oracle::Array mamba2_reference(const ReferenceInputs& x) {
  const oracle::Array& a_log = x.weights[0];
  const std::vector<int64_t>& lengths = x.mask.kv_lengths;
  const oracle::Array delta = oracle::of_gates(
      x.gates[0], lengths, [](int64_t, double gate) { return oracle::softplus(gate); });
  const oracle::Array log_decay = oracle::of_gates(delta, lengths, [&](int64_t head, double step) {
    return -std::exp(a_log.at(0, 0, 0, head)) * step;
  });
  return oracle::decayed_attention(x.q, x.k, x.v, log_decay, delta, 1, lengths);
}

}  // namespace

VariantInfo mamba2() {
  return {.name = "mamba2",
          .family = "gated",
          .summary = "the state space dual of Mamba-2: one decay a head and step",
          .paper = "Dao and Gu 2024, arXiv:2405.21060, eqs. 2 and 16",
          .cost_formula = "5·n·d² FLOPs, memory n·d; in a layer 2·n·width·heads more",
          .traits = kDecayedTraits,
          .params = {},
          .make = make_as<Mamba2>,
          .reference = mamba2_reference,
          .gates = mamba2_gates,
          .always_causal = [](const Params&) { return true; },
          .notes = {"The mixer alone: without the paper's short convolution, skip connection D·x, "
                    "norm and output gate; a state of head_dim·head_dim numbers a head.",
                    "Where query heads share keys and values (kv_heads), each still has its own "
                    "gates, and with them a state of its own.",
                    "A_log [heads]: the state of a head decays by exp(-exp(A_log)·Δ) a step."}};
}

}  // namespace attn::variants
