// fox: forgetting attention: the logit of query i and key j is q_i·k_j/√d + Σ_{j<s<=i} log σ(x_s),
// with a forget gate x of each head and step. Lin et al. 2025, arXiv:2503.02130, eqs. 4 and 5. Time
// 4·n²·d FLOPs, causal half, memory n·d. With open gates softmax attention.
#include <cmath>

#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/reference/gated.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Fox final : public GatedAttention {
 public:
  explicit Fox(const AttentionConfig& config) : GatedAttention(config) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const Var open = scale(zero_padding(gates[0], mask.kv_lengths), -1);
    const Var log_gates = scale(softplus(open), -1);  // log σ(x), without overflow
    return gated_softmax_attention(q, k, v, log_gates,
                                   {.causal = true, .kv_lengths = mask.kv_lengths});
  }
  Cost do_cost(const AttentionShape& shape) const override {
    AttentionShape causal = shape;
    causal.causal = true;
    Cost cost = softmax_cost(causal);
    const auto rows = static_cast<double>(shape.batch * shape.heads * shape.kv_len);
    cost.bytes += 6 * sizeof(real) * rows;  // three passes over the gates
    cost.peak_bytes += (2 * sizeof(real) + sizeof(double)) * rows;
    cost.state_bytes += sizeof(double) * rows;
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return position[2] > 1 ? nullptr : gated_softmax_decoder(position, capacity);
  }
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType cache) const override {
    if (position[2] > 1) return nullptr;
    return typed_softmax_decoder(position, capacity, cache, {.gates = true});
  }
};

std::vector<GateInput> fox_gates(const AttentionConfig&) {
  return {{.name = "forget", .help = "of the forget gate σ(forget), one a head and step"}};
}

// log of the weight of a pair, one gate after the other.
oracle::Array fox_reference(const ReferenceInputs& x) {
  const oracle::Array closed = oracle::of_gates(
      x.gates[0], x.mask.kv_lengths, [](int64_t, double gate) { return -oracle::softplus(-gate); });
  oracle::Array sums = closed;  // of the gates up to each position
  for (int64_t b = 0; b < sums.batch; ++b)
    for (int64_t h = 0; h < sums.heads; ++h)
      for (int64_t i = 1; i < sums.len; ++i) sums.at(b, h, i, 0) += sums.at(b, h, i - 1, 0);
  oracle::Visibility seen = x.visible();
  seen.causal = true;
  const double tau = 1 / std::sqrt(static_cast<double>(x.q.dim));
  return oracle::average(x.q, x.v, seen, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return tau * oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j)) + sums.at(b, h, i, 0) -
           sums.at(b, h, j, 0);
  });
}

}  // namespace

VariantInfo fox() {
  return {
      .name = "fox",
      .family = "normaliser",
      .summary = "softmax attention with forget gates: the Forgetting Transformer",
      .paper = "Lin et al. 2025, arXiv:2503.02130, eqs. 4 and 5",
      .cost_formula =
          "2·n·(n+6)·d FLOPs and 2 operations a pair; memory n·d; in a layer 2·n·width·heads more",
      .traits =
          {.causal = true, .convex = true, .decode = true, .typed_cache = true, .gated = true},
      .params = {},
      .make = make_as<Fox>,
      .reference = fox_reference,
      .gates = fox_gates,
      .always_causal = [](const Params&) { return true; },
      .notes = {"The attention alone, unless block=paper, without rotary positions (training's "
                "default adds learned ones): no norm of queries and keys, token shift or output "
                "gate of the paper's Pro block.",
                "The gate of a step is not among those that its own key passes; the gates' sum is "
                "added to scaled logits.",
                "No key block is pruned, however closed the gates between are.",
                "Where query heads share keys and values (kv_heads), each still has its own gates, "
                "and with them a cache of its own."},
      .block = LayerBlock{
          .key_value_shift = true,
          .query_key_norm = true,
          .biased_gates = {"forget"},
          .norm = LayerBlock::Norm::rms_of_heads,
          .norms_each_head = true,
          .norm_epsilon = 1e-6,
          .gate = LayerBlock::Gate::sigmoid,
          .replaces_steps = true,
          .notes = {
              "Lin et al. 2025, section 3.3 and figure 2: the Pro block, as in "
              "zhixuan-lin/forgetting-transformer: keys and values mixed with those before, norms "
              "of queries, keys and output, each head with a gain of its own, a sigmoid gate."}}};
}

}  // namespace attn::variants
