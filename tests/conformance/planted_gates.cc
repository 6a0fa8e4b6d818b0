// Faults of variants that read gates: a gate of another position, head or batch entry is read, its
// gradient is wrong, padding decays, a decoder keeps an old gate. See planted.h.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/ops.h"
#include "tests/conformance/planted_softmax.h"
#include "tests/conformance/planted.h"
#include "variants/api/gated_attention.h"
#include "variants/api/visible_pairs.h"
#include "variants/catalog.h"
#include "variants/reference/gated.h"

namespace attn {
namespace {

struct GateFaults {
  std::function<Var(const Var&)> gate;  // of the raw gate, zeros in the padding
  std::function<Var(const Var&)> log_decay;
  bool padding_decays = false, padding_is_read = false;
};

// Weights τ·q_i·k_j·exp(g_{j+1} + … + g_i) with g = log σ(gate), a number a head and position:
// decayed linear attention with a matrix of all pairs. O(n²·d) time and memory.
class GatedTextbook final : public GatedAttention {
 public:
  GatedTextbook(const AttentionConfig& config, GateFaults faults)
      : GatedAttention(config), faults_(std::move(faults)) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const int64_t n = k.dim(2);
    const Var keys = zero_padding(k, mask.kv_lengths), values = zero_padding(v, mask.kv_lengths);
    Var gate = faults_.padding_is_read ? gates[0] : zero_padding(gates[0], mask.kv_lengths);
    if (faults_.gate) gate = faults_.gate(gate);
    Var log_decay = scale(softplus(scale(gate, -1)), -1);  // [batch, heads, n, 1]
    if (!faults_.padding_decays && !faults_.padding_is_read)
      log_decay = zero_padding(log_decay, mask.kv_lengths);
    if (faults_.log_decay) log_decay = faults_.log_decay(log_decay);
    const Tensor lower = Tensor::zeros({n, n});
    for (int64_t i = 0; i < n; ++i) std::fill_n(lower.data() + i * n, i + 1, real(1));
    const Var sums = matmul(Var(lower), log_decay);  // g_0 + … + g_i
    const Var row(Tensor::full({1, n}, 1)), column(Tensor::full({n, 1}, 1));
    const Var between = subtract(matmul(sums, row), matmul(column, sums, false, true));
    const Var visible(
        visible_pairs({.causal = true, .kv_lengths = mask.kv_lengths}, q.shape(), k.shape()));
    const double tau = 1 / std::sqrt(static_cast<double>(q.dim(3)));
    const Var scores = scale(matmul(q, keys, false, true), tau);
    const Var decays = multiply(exponential(multiply(between, visible)), visible);
    return matmul(multiply(scores, decays), values);
  }

  GateFaults faults_;
};

VariantInfo gated_with(const std::string& name, const GateFaults& faults, bool referenced) {
  VariantInfo info;
  info.name = name;
  info.summary = "linear attention with a gated decay, all pairs at once";
  info.traits = {.causal = true, .linear_memory = false, .gated = true};
  info.gates = [](const AttentionConfig&) {
    return std::vector<GateInput>{{.name = "decay", .help = "log-decay log σ(x)"}};
  };
  info.make = [faults](const AttentionConfig& config) {
    return std::make_unique<GatedTextbook>(config, faults);
  };
  if (referenced)
    info.reference = [](const ReferenceInputs& x) {
      const auto log_sigmoid = [](int64_t, double gate) { return -oracle::softplus(-gate); };
      return oracle::decayed_attention(
          x.q, x.k, x.v, oracle::of_gates(x.gates[0], x.mask.kv_lengths, log_sigmoid), {},
          1 / std::sqrt(static_cast<double>(x.q.dim)), x.mask.kv_lengths);
    };
  return info;
}

// Position i holds what was at i + 1 along `dim`, the last one what was at the first.
Var turned(const Var& x, int dim) {
  if (x.dim(dim) == 1) return x;
  const std::vector<Var> parts = {slice(x, dim, 1, x.dim(dim)), slice(x, dim, 0, 1)};
  return concat(parts, dim);
}

// A decoder that decays each step by the gate of the step before.
class LateGates final : public Decoder {
 public:
  LateGates(const Shape& position, std::unique_ptr<Decoder> inner)
      : Decoder(position, inner->capacity(), inner->gate_widths()),
        row_(position),
        inner_(std::move(inner)) {}

 private:
  Tensor copy(const real* from) const {
    const Tensor to({row_[0], row_[1], 1, row_[3]});
    std::copy_n(from, to.size(), to.data());
    return to;
  }
  void do_extend(const Tensor& k, const Tensor& v) override { inner_->extend(k, v, {}, gates()); }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    while (inner_->length() > length()) inner_->step_back();
    const std::vector<Tensor> now = {gates()[0].clone()};
    const Tensor result({row_[0], row_[1], 1, row_[3]});
    inner_->step(copy(q), copy(k), copy(v), result, before_.empty() ? now : before_);
    before_ = now;
    std::copy_n(result.data(), result.size(), out);
  }
  int64_t do_state_bytes() const override { return inner_->state_bytes(); }
  double do_step_flops() const override { return inner_->step_flops(); }
  double do_step_bytes() const override { return inner_->step_bytes(); }

  Shape row_;
  std::unique_ptr<Decoder> inner_;
  std::vector<Tensor> before_;
};

class LateGla final : public GatedAttention {
 public:
  explicit LateGla(const AttentionConfig& config)
      : GatedAttention(config), right_(find_variant("gla").build(config, {})) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    return right_->forward(q, k, v, mask, gates);
  }
  Cost do_cost(const AttentionShape& shape) const override { return right_->cost(shape); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (position[2] > 1) return nullptr;
    return std::make_unique<LateGates>(position, right_->decoder(position[0], capacity));
  }

  std::unique_ptr<Attention> right_;
};

}  // namespace

VariantInfo faultless_gated(bool referenced) {
  return gated_with("faultless_gated", {}, referenced);
}

std::vector<PlantedVariant> planted_gates() {
  const auto times = [](double factor) {
    return [factor](const Var& x) {
      return with_gradient(x, [factor](double slope) { return factor * slope; });
    };
  };
  const auto along = [](int dim) { return [dim](const Var& x) { return turned(x, dim); }; };
  std::vector<PlantedVariant> list = {
      {gated_with("gate_of_the_future", {.gate = along(2)}, false), "causality"},
      {gated_with("gate_of_the_next_head", {.gate = along(1)}, false), "heads"},
      {gated_with("gate_of_the_next_entry", {.gate = along(0)}, false), "batch"},
      {gated_with("gate_in_the_padding", {.padding_is_read = true}, false), "padding"},
      {gated_with("padding_decays", {.padding_decays = true}, false), "padding"},
      {gated_with("gradient_of_a_gate", {.gate = times(1.3)}, false), "gradients"},
      {gated_with("no_gradient_of_a_gate", {.gate = times(0)}, false), "gradients"},
      {gated_with("gradient_of_a_gate_by_one_percent", {.gate = times(1.01)}, true), "reference"},
      {gated_with("gate_unread", {.gate = [](const Var& x) { return scale(x, 0); }}, false),
       "gradients"},
      {gated_with("one_gate_for_all_heads",
                  {.gate =
                       [](const Var& x) {
                         const std::vector<Var> same(static_cast<size_t>(x.dim(1)),
                                                     slice(x, 1, 0, 1));
                         return concat(same, 1);
                       }},
                  false),
       "heads"},
      {gated_with("other_gate_when_recorded",
                  {.gate = [](const Var& x) { return recording({x}) ? shift(x, 0.01) : x; }},
                  false),
       "recording"},
      {gated_with("decays_twice", {.log_decay = [](const Var& x) { return scale(x, 2); }}, true),
       "reference"},
  };
  VariantInfo late = find_variant("gla");
  late.name = "gate_of_the_step_before";
  late.make = make_as<LateGla>;
  list.push_back({late, "decode"});
  return list;
}

}  // namespace attn
