// linear: attention with the kernel φ(q)·φ(k), φ(x) = elu(x) + 1, instead of exp(q·k/√d); causal by
// prefix sums in chunks. Katharopoulos et al. 2020, arXiv:2006.16236, eqs. 5, 7, 9-12. Time
// O(n·d²), memory O(n·d + d²). No limit equals softmax.
#include "variants/api/variant_info.h"
#include "variants/features/features.h"

namespace attn::variants {
namespace {

class Linear final : public Attention {
 public:
  explicit Linear(const AttentionConfig& config) : Attention(config) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return linear_attention(
        q, k, v, {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .map = elu_plus_one()});
  }

  Cost do_cost(const AttentionShape& shape) const override {
    return linear_cost(shape, elu_plus_one());
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return linear_decoder(position, capacity, elu_plus_one());
  }
};

}  // namespace

VariantInfo linear() {
  return {.name = "linear",
          .family = "kernel",
          .summary = "kernel attention with the feature map elu + 1",
          .paper = "Katharopoulos et al. 2020, arXiv:2006.16236, eqs. 5, 7, 9-12",
          .cost_formula =
              "4·n·d·(d+1) FLOPs, causal about 172·n·d more inside chunks of 64; "
              "memory n·d, and about d·(d + 192) a thread",
          .traits = kKernelTraits,
          .params = {},
          .make = make_as<Linear>,
          .reference = [](const ReferenceInputs& x) {
            return oracle::kernel_attention(x.q, x.k, x.v, x.visible(), oracle::elu_plus_one());
          }};
}

}  // namespace attn::variants
