// gated_attention: softmax attention whose output passes a gate, softmax(q·k/√d)·v ⊙ σ(g), with a g
// of the query's own position. Qiu et al. 2025, arXiv:2505.06708, eq. 5 at position G1, as in
// Qwen3-Next. Time 4·n²·d FLOPs, memory n·d.
#include <algorithm>
#include <utility>

#include "core/ops/ops.h"
#include "core/simd/row_ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/normalisers/handing_decoder.h"
#include "variants/reference/gated.h"
#include "variants/reference/mixers.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

int64_t gate_width(const AttentionConfig& config) {
  return config.params.text("gate") == "channel" ? config.head_dim : 1;
}

class GatedOutputDecoder final : public HandingDecoder {
 public:
  GatedOutputDecoder(const Shape& position, std::unique_ptr<Decoder> inner, int64_t width)
      : HandingDecoder(position, std::move(inner), {width}), open_({heads() * group(), width}) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override { inner().extend(k, v); }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    answer(q, k, v);
    sigmoid_row(open_.size(), gates()[0].data(), open_.data());
    const int64_t each = head_dim() / open_.dim(1);  // numbers that share a gate
    for (int64_t i = 0; i < out_.size(); ++i) out[i] = out_[i] * open_[i / each];
  }

  Tensor open_;  // [batch · query heads, width]
};

class GatedSoftmax final : public GatedAttention {
 public:
  explicit GatedSoftmax(const AttentionConfig& config) : GatedAttention(config) {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    const Var out =
        softmax_attention(q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths});
    return multiply(out, sigmoid(zero_padding(gates[0], mask.kv_lengths)));
  }
  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = softmax_cost(shape);
    const auto rows = static_cast<double>(shape.batch * shape.heads * shape.q_len);
    const double out = sizeof(real) * rows * static_cast<double>(shape.head_dim),
                 open = sizeof(real) * rows * static_cast<double>(gate_width(config()));
    cost.bytes += 2 * out + 3 * open;
    cost.peak_bytes = std::max(cost.peak_bytes, 2 * out + open);
    return cost;
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return std::make_unique<GatedOutputDecoder>(position, softmax_decoder(position, capacity),
                                                gate_width(config()));
  }
};

std::vector<GateInput> output_gates(const AttentionConfig& config) {
  return {{.name = "output",
           .help = "of the gate σ(output) of each head's output",
           .width = gate_width(config)}};
}

oracle::Array gated_attention_reference(const ReferenceInputs& x) {
  oracle::Array out = oracle::softmax_attention(x.q, x.k, x.v, x.visible());
  const oracle::Array gates =  // 0 in the padding
      oracle::of_gates(x.gates[0], x.mask.kv_lengths, [](int64_t, double gate) { return gate; });
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (int64_t i = 0; i < out.len; ++i)
        for (int64_t c = 0; c < out.dim; ++c)
          out.at(b, h, i, c) *= oracle::logistic(gates.at(b, h, i, gates.dim == 1 ? 0 : c));
  return out;
}

}  // namespace

VariantInfo gated_attention() {
  return {.name = "gated_attention",
          .family = "normaliser",
          .summary = "softmax attention times a gate of the query's position, as in Qwen3-Next",
          .paper = "Qiu et al. 2025, arXiv:2505.06708, eq. 5, position G1",
          .cost_formula =
              "4·n²·d FLOPs, causal 2·n·(n+6)·d; memory n·d; in a layer 2·n·width·heads·d more, or "
              "2·n·width·heads with a gate of a head",
          .traits = {.causal = true, .decode = true, .gated = true},
          .params = {{"gate",
                      {"channel", "head"},
                      "channel: a gate of each channel of each head; head: one of each head"}},
          .make = make_as<GatedSoftmax>,
          .reference = gated_attention_reference,
          .gates = output_gates,
          .notes = {
              "A layer projects the gates from its input, without a bias. The gate stands before "
              "the output projection.",
              "A gate of 1 is exact attention, a gate of 0 no output at all: a head may attend "
              "to nothing, as with a sink.",
              "The norm of queries and keys, which Qwen3-Next has beside the gate, is qk_norm's."}};
}

}  // namespace attn::variants
