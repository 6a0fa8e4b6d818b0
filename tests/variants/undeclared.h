// Two variants that declare no cost: one composed from ops, whose figures are known, and `linear`
// without its formulas, which decodes; and any variant at its defaults, made for one shape.
#pragma once

#include <memory>

#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/api/visible_pairs.h"
#include "variants/features/feature_maps.h"
#include "variants/features/linear_attention.h"
#include "variants/features/linear_decoder.h"

namespace attn {

// (q·kᵀ where the query sees the key)·v. 4·m·n·d FLOPs; q·kᵀ, the mask, their product and the
// output live at once: 3·m·n + m·d numbers.
class Undeclared final : public Attention {
 public:
  explicit Undeclared(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const Var visible(visible_pairs(mask, q.shape(), k.shape()));
    const Var keys = zero_padding(k, mask.kv_lengths), values = zero_padding(v, mask.kv_lengths);
    return matmul(multiply(matmul(q, keys, false, true), visible), values);
  }
};

class UndeclaredLinear final : public Attention {
 public:
  explicit UndeclaredLinear(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(
        q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = elu_plus_one()});
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, elu_plus_one());
  }
};

inline const VariantInfo& undeclared() {
  static const VariantInfo info = [] {
    VariantInfo made;
    made.name = "undeclared";
    made.summary = "weights that are the scores themselves";
    made.traits = {.causal = true, .cross = true, .linear_memory = false};
    made.make = make_as<Undeclared>;
    return made;
  }();
  return info;
}

inline const VariantInfo& undeclared_linear() {
  static const VariantInfo info = [] {
    VariantInfo made;
    made.name = "undeclared_linear";
    made.summary = "linear attention";
    made.traits = {.causal = true, .cross = true, .linear_time = true, .decode = true};
    made.make = make_as<UndeclaredLinear>;
    return made;
  }();
  return info;
}

inline std::unique_ptr<Attention> attention_for(const VariantInfo& info,
                                                const AttentionShape& shape) {
  return info.build({.heads = shape.heads,
                     .head_dim = shape.head_dim,
                     .max_len = shape.kv_len,
                     .causal = shape.causal,
                     .params = {}},
                    {});
}

}  // namespace attn
