// See decay_gate.h. One pass over the gate each way.
#include "variants/chunked/decay_gate.h"

#include <algorithm>
#include <cmath>

#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
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

Var gated_log_decay(const Var& dt, const Var& rates, const std::vector<int64_t>& kv_lengths) {
  const Tensor from = dt.value(), a_log = rates.value(), out(dt.shape());
  const int64_t batch = dt.dim(0), heads = dt.dim(1), len = dt.dim(2), width = dt.dim(3);
  const int64_t numbers = len * width;  // of a head
  const auto valid = [kv_lengths, heads, len, width](int64_t head) {
    return (kv_lengths.empty() ? len : kv_lengths[static_cast<size_t>(head / heads)]) * width;
  };
  over_range(batch * heads, 8 * numbers, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const real rate = -std::exp(a_log[head % heads]);
      const real* const x = from.data() + head * numbers;
      real* const y = out.data() + head * numbers;
      for (int64_t i = 0; i < valid(head); ++i) y[i] = rate * softplus_of(x[i]);
      std::fill(y + valid(head), y + numbers, real(0));
    }
  });
  return custom_op(out, {dt, rates}, [=](const Tensor& g, std::span<Tensor> grads) {
    std::vector<double, Recycled<double>> sums(static_cast<size_t>(batch * heads));
    over_range(batch * heads, 8 * numbers, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        const real rate = -std::exp(a_log[head % heads]);
        double sum = 0;
        for (int64_t i = head * numbers; i < head * numbers + valid(head); ++i) {
          sum += static_cast<double>(g[i]) * static_cast<double>(out[i]);
          if (grads[0].defined()) grads[0][i] += rate * g[i] / (1 + std::exp(-from[i]));
        }
        sums[static_cast<size_t>(head)] = sum;
      }
    });
    if (!grads[1].defined()) return;
    for (int64_t head = 0; head < batch * heads; ++head)
      grads[1][head % heads] += static_cast<real>(sums[static_cast<size_t>(head)]);
  });
}

void add_decay_cost(const AttentionShape& s, int64_t width, Cost& cost) {
  const double bytes = sizeof(real) * static_cast<double>(s.batch * s.heads * s.kv_len * width);
  cost.bytes += 2 * bytes, cost.peak_bytes += bytes;
}

void set_decay(const StateRows& rows, int64_t head_dim, int64_t width, real rate) {
  const real* const dt = rows.gates[0];
  for (int64_t c = 0; c < width; ++c)
    rows.decay[c] = std::exp(-std::exp(rate) * softplus_of(dt[c]));
  if (width == 1) std::fill_n(rows.decay, head_dim, rows.decay[0]);
}

oracle::Array log_decay_reference(const ReferenceInputs& x, const oracle::Array& dt) {
  return oracle::of_gates(dt, x.mask.kv_lengths, [&](int64_t head, double gate) {
    return -std::exp(x.weights[0].at(0, 0, 0, head)) * oracle::softplus(gate);
  });
}

}  // namespace attn
