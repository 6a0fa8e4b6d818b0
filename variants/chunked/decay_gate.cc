// See decay_gate.h.
#include "variants/chunked/decay_gate.h"

#include <algorithm>
#include <cmath>

#include "core/simd/row_ops.h"
#include "variants/reference/gated.h"

namespace attn {

Tensor decay_rates(const AttentionConfig& config, double least) {
  Rng stream = rng(config.seed, "A_log");
  const Tensor rates({config.heads});
  for (real& value : rates.values())  // uniform() is below 1: the rate is above `least`
    value = static_cast<real>(std::log(16 - (16 - least) * stream.uniform()));
  return rates;
}

GateInput decay_gate(const AttentionConfig& config, int64_t width, int64_t rank) {
  Rng stream = rng(config.seed, "dt bias");
  std::vector<double> bias(static_cast<size_t>(config.heads * width));
  for (double& value : bias) {
    const double step = std::exp(stream.uniform(std::log(1e-3), std::log(0.1)));
    value = step + std::log(-std::expm1(-step));  // the inverse of softplus
  }
  return {.name = "dt",
          .help = "of the decay exp(-exp(A_log)·softplus(dt))",
          .width = width,
          .rank = rank,
          .bias = bias};
}

void set_decay(const StateRows& rows, int64_t head_dim, int64_t width, const LogDecay& rule) {
  HeadDecay(rule, rows.head).values(width, rows.gates[0], rows.decay);
  exp_row(width, rows.decay, 1, 0, rows.decay);
  if (width == 1) std::fill_n(rows.decay, head_dim, rows.decay[0]);
}

oracle::Array log_decay_reference(const ReferenceInputs& x, const oracle::Array& dt) {
  return oracle::of_gates(dt, x.mask.kv_lengths, [&](int64_t head, double gate) {
    return -std::exp(x.weights[0].at(0, 0, 0, head)) * oracle::softplus(gate);
  });
}

}  // namespace attn
