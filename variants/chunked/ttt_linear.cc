// ttt_linear: test-time training: the state is a linear model that each position trains to map its
// key to its value. Sun et al. 2024, arXiv:2407.04620, sections 2.1-2.7: o_i = q_i + LN(q_i·W_i +
// b_i), W_i by gradient descent on |LN(k·W + b) - (v - k)|²/2 with the rates η_ij = max(0, 1/(i+1)
// + θ_i)·base_rate·σ(lr_j)/d, in mini-batches. Time about 6·n·d² + 4·n·mini_batch·d, memory n·d.
#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/test_time_training.h"
#include "variants/reference/gated.h"
#include "variants/reference/test_time.h"

namespace attn::variants {
namespace {

constexpr double kDeviation = 0.02;  // of W at the start, as in the authors' code

// 1/(i + 1): a step is the mean of the gradients so far, until θ is learned.
Tensor mean_rates(int64_t mini_batch) {
  Tensor rates({mini_batch});
  for (int64_t i = 0; i < mini_batch; ++i) rates[i] = 1 / static_cast<real>(i + 1);
  return rates;
}

class TttLinear final : public GatedAttention {
 public:
  explicit TttLinear(const AttentionConfig& config)
      : GatedAttention(config),
        means_(mean_rates(params().integer("mini_batch"))),
        theta_(weight("theta", Tensor::zeros(means_.shape()))),
        gain_(weight("gain", Tensor::full({config.heads, config.head_dim}, 1))),
        shift_(weight("shift", Tensor::zeros({config.heads, config.head_dim}))),
        start_(normal_weight("W", {config.heads, config.head_dim, config.head_dim}, kDeviation)),
        bias_(weight("b", Tensor::zeros({config.heads, config.head_dim}))) {}

 private:
  double factor() const {
    return params().number("base_rate") / static_cast<double>(config().head_dim);
  }
  Var token_rates() const { return relu(add(Var(means_), theta_)); }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    const Var rate = scale(sigmoid(zero_padding(gates[0], lengths)), factor());
    return test_time_training({.q = q,
                               .k = k,
                               .v = v,
                               .rate = rate,
                               .token_rates = token_rates(),
                               .gain = gain_,
                               .shift = shift_,
                               .weights = start_,
                               .bias = bias_},
                              {.kv_lengths = lengths});
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = training_cost(s, means_.size());
    const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
    cost.bytes += sizeof(real) * 4 * rows;  // the rates of the gates
    cost.peak_bytes += sizeof(real) * (rows + static_cast<double>(means_.size()));
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const NoGrad no_grad;
    return training_decoder(position, capacity, {token_rates(), gain_, shift_, start_, bias_},
                            factor());
  }

  Tensor means_;                     // [mini_batch]
  Var theta_;                        // [mini_batch]
  Var gain_, shift_, start_, bias_;  // LN and b [heads, head_dim], W [heads, head_dim, head_dim]
};

std::vector<GateInput> ttt_linear_gates(const AttentionConfig& config) {
  return {{.name = "lr",
           .help = "of the learning rate base_rate·σ(lr)/head_dim of a position",
           .bias = std::vector<double>(static_cast<size_t>(config.heads), 0)}};
}

oracle::Array ttt_linear_reference(const ReferenceInputs& x) {
  oracle::Array rates = oracle::of_gates(x.gates[0], x.mask.kv_lengths, [&](int64_t, double gate) {
    return x.params().number("base_rate") / (1 + std::exp(-gate)) / static_cast<double>(x.q.dim);
  });
  return oracle::trained_outputs(x.q, x.k, x.v, rates, x.weights, x.mask.kv_lengths, x.rows);
}

}  // namespace

VariantInfo ttt_linear() {
  return {.name = "ttt_linear",
          .family = "gated",
          .summary = "test-time training: a linear model as state, trained by every position",
          .paper = "Sun et al. 2024, arXiv:2407.04620, sections 2.1-2.7",
          .cost_formula =
              "6·n·d² + 4·n·mini_batch·d FLOPs; memory n·d, in training d² for each mini-batch; in "
              "a layer 2·n·width·heads more",
          .traits = {.causal = true,
                     .linear_time = true,
                     .decode = true,
                     .nonlinear = true,
                     .gated = true},
          .params = {{"mini_batch", 16, "positions whose gradients are taken at the same state"},
                     {"base_rate", 1.0, "base learning rate of the state", 0.0, 1e6}},
          .make = make_as<TttLinear>,
          .reference = ttt_linear_reference,
          .gates = ttt_linear_gates,
          .always_causal = [](const Params&) { return true; },
          .notes = {"The mixer alone, unless block=paper: without the authors' convolution or "
                    "rotation of queries and keys, the norm after the heads and the output gate.",
                    "The output is q + LN(q·W + b), as in the authors' code; fla has LN(z) + z.",
                    "A state of W [d, d] and b [d], and in decoding the sums of their gradients.",
                    "Where query heads share keys and values (kv_heads), each still has its own "
                    "gates, and with them a state of its own."},
          .block = LayerBlock{
              .norm = LayerBlock::Norm::layer,
              .norm_epsilon = 1e-6,
              .notes = {"Sun et al. 2024, section 2.7; defaults of "
                        "test-time-training/ttt-lm-pytorch, ttt.py: a norm after the heads. "
                        "Without that code's rotation of queries and keys within a mini-batch."}}};
}

}  // namespace attn::variants
