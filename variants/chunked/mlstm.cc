// mlstm: the matrix LSTM of xLSTM: a state that an exponential gate writes and a sigmoid gate lets
// decay, over a divisor with a sign: Σ_j w_ij·v_j / max(|Σ_j w_ij|, 1) with w_ij = q_i·k_j/√d ·
// exp(Σ_{j<s<=i} log σ(f_s) + i_j). Beck et al. 2024, arXiv:2405.04517, eqs. 19-27. Time about
// 4·n·d² + 172·n·d, memory 4·n·d.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/memory.h"
#include "core/ops/ops.h"
#include "core/simd/rows.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/chunked/chunked.h"
#include "variants/reference/gated.h"

namespace attn::variants {
namespace {

constexpr double kEpsilon = 1e-6;  // added to divisors

double capped(double x, double cap) { return cap * std::tanh(x / cap); }

// cap·tanh(x/cap) of each gate. e^cap is the largest strength of a write: no running maximum is
// needed. In double, since errors of decays add up over positions.
Var capped(const Var& gates, double cap) {
  const Tensor from = gates.value(), to(from.shape());
  for (int64_t i = 0; i < to.size(); ++i)
    to[i] = static_cast<real>(capped(static_cast<double>(from[i]), cap));
  return custom_op(to, {gates}, [from, cap](const Tensor& g, std::span<Tensor> grads) {
    for (int64_t i = 0; i < g.size(); ++i) {
      const double share = std::tanh(static_cast<double>(from[i]) / cap);
      grads[0][i] += g[i] * static_cast<real>(1 - share * share);
    }
  });
}

real divisor_of(real sum) { return std::max(std::abs(sum), real(1)) + static_cast<real>(kEpsilon); }

// [.., 1] -> [.., 1]
Var divisors(const Var& sums) {
  const Tensor from = sums.value(), to(from.shape());
  for (int64_t i = 0; i < to.size(); ++i) to[i] = divisor_of(from[i]);
  return custom_op(to, {sums}, [from](const Tensor& g, std::span<Tensor> grads) {
    for (int64_t i = 0; i < g.size(); ++i)
      if (std::abs(from[i]) > 1) grads[0][i] += from[i] > 0 ? g[i] : -g[i];
  });
}

// The state of a head: [head_dim, head_dim + 1], whose last column is the sum of written keys.
class MlstmDecoder final : public HeadDecoder {
 public:
  MlstmDecoder(const Shape& position, int64_t capacity, double cap)
      : HeadDecoder(position, capacity, {1, 1}),
        cap_(cap),
        states_(Tensor::zeros({heads(), head_dim(), head_dim() + 1})),
        work_(static_cast<size_t>(heads() * work_reals()) * sizeof(real), Purpose::workspace) {}

 private:
  // Of a head: decays, what is written, what is read, and the room of a step.
  int64_t work_reals() const {
    const int64_t dim = head_dim();
    return padded_reals(dim + 2 * (dim + 1) + step_reals(dim, dim + 1));
  }

  void step_of(int64_t head, int64_t i, const real* q, const real* k, const real* v, real* out,
               Tally& done) const override {
    const int64_t dim = head_dim();
    const auto gate = [&](size_t which) {
      const Tensor& of = gates()[which];
      return capped(static_cast<double>(of[head * of.dim(2) + i]), cap_);
    };
    const auto strength = static_cast<real>(std::exp(gate(0))),
               kept = static_cast<real>(1 / (1 + std::exp(-gate(1))));
    real* const decay = static_cast<real*>(work_.data()) + head * work_reals();
    real *const written = decay + dim, *const read = written + dim + 1;
    std::fill_n(decay, dim, kept);
    for (int64_t c = 0; c < dim; ++c) written[c] = strength * v[c];
    written[dim] = strength;
    advance_state(
        {.key_dim = dim, .dim = dim + 1, .q = q, .k = k, .v = written, .decay = decay, .out = read},
        states_.data() + head * dim * (dim + 1), read + dim + 1, done);
    if (!q) return;
    const auto scale = static_cast<real>(1 / std::sqrt(static_cast<double>(dim)));
    const real over = scale / divisor_of(scale * read[dim]);
    for (int64_t c = 0; c < dim; ++c) out[c] = over * read[c];
  }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * states_.size();
  }
  double do_step_flops() const override { return 4 * static_cast<double>(states_.size()); }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  double cap_;
  Tensor states_;
  Block work_;
};

class Mlstm final : public GatedAttention {
 public:
  explicit Mlstm(const AttentionConfig& config)
      : GatedAttention(config), cap_(params().number("cap")) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const int64_t dim = v.dim(3);
    const Var sums = chunked_attention(
        {.q = q,
         .k = k,
         .v = written(v, gates[0], mask),
         .log_decay = capped(zero_padding(gates[1], mask.kv_lengths), cap_),
         .rule = LogDecay::of_sigmoid(1)},
        {.kv_lengths = mask.kv_lengths, .scale = 1 / std::sqrt(static_cast<double>(dim))});
    return divide(slice(sums, 3, 0, dim), divisors(slice(sums, 3, dim, dim + 1)));
  }

  // Values times their strengths, and beside them the strengths: [.., head_dim + 1].
  Var written(const Var& v, const Var& gate, const Mask& mask) const {
    const Var strength = exponential(capped(zero_padding(gate, mask.kv_lengths), cap_));
    const Var both[] = {multiply(zero_padding(v, mask.kv_lengths), strength), strength};
    return concat(both, 3);
  }

  Cost do_cost(const AttentionShape& s) const override {
    Cost cost = chunked_cost(ChunkedProblem{.batch = s.batch,
                                            .heads = s.heads,
                                            .len = s.kv_len,
                                            .key_dim = s.head_dim,
                                            .dim = s.head_dim + 1,
                                            .decay = Decay::step,
                                            .rule = LogDecay::of_sigmoid(1)});
    const auto rows = static_cast<double>(s.batch * s.heads * s.kv_len);
    const double values = sizeof(real) * rows * static_cast<double>(s.head_dim);
    cost.bytes += 8 * values;
    // What is written and a gate beside the pass; or the sums, both their parts and the output.
    const double gate = sizeof(real) * rows;
    cost.peak_bytes = std::max(cost.peak_bytes + values + 2 * gate, 3 * values + 3 * gate);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (position[2] > 1) return nullptr;  // each query head has gates and a state of its own
    return std::make_unique<MlstmDecoder>(position, capacity, cap_);
  }

  double cap_;
};

std::vector<GateInput> mlstm_gates(const AttentionConfig& config) {
  std::vector<double> zeros(static_cast<size_t>(config.heads), 0.0), open = zeros;
  for (size_t h = 0; h < open.size(); ++h)  // from 3 to 6, head by head
    open[h] = 3 + 3 * static_cast<double>(h) / std::max(1.0, static_cast<double>(open.size()) - 1);
  return {{.name = "input", .help = "i of the strength e^i of a write", .bias = zeros},
          {.name = "forget", .help = "f of the share σ(f) of the state that stays", .bias = open}};
}

oracle::Array mlstm_reference(const ReferenceInputs& x) {
  const double cap = x.params().number("cap");
  const auto within = [&](double gate) { return cap * std::tanh(gate / cap); };
  const std::vector<int64_t>& lengths = x.mask.kv_lengths;
  const oracle::Array strength = oracle::of_gates(
      x.gates[0], lengths, [&](int64_t, double gate) { return std::exp(within(gate)); });
  const oracle::Array decay = oracle::of_gates(
      x.gates[1], lengths, [&](int64_t, double gate) { return -oracle::softplus(-within(gate)); });
  oracle::Array ones(x.v.batch, x.v.heads, x.v.len, 1);
  std::fill(ones.x.begin(), ones.x.end(), 1.0);
  const double tau = 1 / std::sqrt(static_cast<double>(x.q.dim));
  const auto sums_of = [&](const oracle::Array& values) {
    return oracle::decayed_attention(x.q, x.k, values, decay, strength, tau, lengths, x.rows);
  };
  oracle::Array out = sums_of(x.v);
  const oracle::Array sums = sums_of(ones);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < out.len; ++i)
        for (int64_t c = 0; c < out.dim; ++c)
          out.at(b, h, i, c) /= std::fmax(std::fabs(sums.at(b, h, i, 0)), 1) + 1e-6;
  return out;
}

}  // namespace

VariantInfo mlstm() {
  return {
      .name = "mlstm",
      .family = "gated",
      .summary = "the matrix LSTM of xLSTM: an exponential gate writes, a divisor has a sign",
      .paper = "Beck et al. 2024, arXiv:2405.04517, eqs. 19-27",
      .cost_formula =
          "4·n·d·(d+1) FLOPs and about 172·n·d inside tiles of 64; memory 4·n·d; in a layer "
          "4·n·width·heads more",
      .traits = kGatedTraits,
      .params = {{"cap", 15.0, "gates pass cap·tanh(x/cap)", 1.0, 30.0}},
      .make = make_as<Mlstm>,
      .reference = mlstm_reference,
      .gates = mlstm_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = {"The mixer alone, unless block=paper.",
                "The gates are capped as in xLSTM-7B (arXiv:2503.13427, section 3.2), where cap is "
                "15. The first paper has no cap and a running maximum of exponents; the state here "
                "is the same without that maximum, since e^cap is a number of float32.",
                "The divisor is at least 1 in units of the state, the paper's eq. 21, and has 1e-6 "
                "added. NX-AI/xlstm adds that to the divisor over e^maximum.",
                "Biases start at 0 (input) and from 3 to 6 over the heads (forget), as in "
                "NX-AI/xlstm, where that of the input is N(0, 0.1²) and the weights of both gates "
                "start at 0. xLSTM-7B starts the input's at -10.",
                "Where query heads share keys and values (kv_heads), each still has its own gates, "
                "and with them a state of its own."},
      // Weights with signs nearly cancel in sums and in their divisor.
      .rounding = 8,
      .block = LayerBlock{
          .norm = LayerBlock::Norm::layer_of_heads,
          .norms_each_head = true,
          .norm_epsilon = 1e-6,
          .gate = LayerBlock::Gate::sigmoid,
          .notes = {"Beck et al. 2025, arXiv:2503.13427, section 3.2; NX-AI/xlstm, xlstm_large: a "
                    "norm of each head, then a sigmoid gate. Queries and keys have head_dim "
                    "numbers; that code has half."}}};
}

}  // namespace attn::variants
