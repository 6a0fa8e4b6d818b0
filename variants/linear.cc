// linear: attention with the kernel φ(q)·φ(k), φ(x) = elu(x) + 1, instead of exp(q·k/√d); causal by
// prefix sums in chunks. Katharopoulos et al. 2020, arXiv:2006.16236, eqs. 5, 7, 9-12. Time
// O(n·d²), memory O(n·d + d²). No limit equals softmax.
#include "variants/attention.h"
#include "variants/kernels/feature_maps.h"
#include "variants/kernels/linear_attention.h"

namespace attn::variants {
namespace {

class Linear final : public Attention {
 public:
  explicit Linear(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(elu_features(q), elu_features(k, mask.kv_lengths), v,
                            {.causal = mask.causal, .kv_lengths = mask.kv_lengths});
  }

  Cost do_cost(const AttentionShape& shape) const override {
    const double rows =
        static_cast<double>(shape.batch * shape.heads * (shape.q_len + shape.kv_len));
    const double features = sizeof(real) * rows * static_cast<double>(shape.head_dim);
    Cost cost = linear_cost(shape, shape.head_dim);
    cost.bytes += 2 * features;
    cost.peak_bytes += features;
    return cost;
  }
};

}  // namespace

VariantInfo linear() {
  return {.name = "linear",
          .summary = "kernel attention with the feature map elu + 1",
          .paper = "Katharopoulos et al. 2020, arXiv:2006.16236, eqs. 5, 7, 9-12",
          .cost_formula =
              "4·n·d·(d+1) FLOPs, causal 320·n·d more inside chunks of 128; "
              "memory 3·n·d and d·(d+1) a chunk of 512, causal of 128",
          .traits = {.causal = true,
                     .cross = true,
                     .linear_time = true,
                     .convex = true,
                     .permutable = true},
          .params = {},
          .make = make_as<Linear>,
          .limit = [](const AttentionShape&) { return std::nullopt; },
          .skip_reason = {}};
}

}  // namespace attn::variants
