// relu: weights relu(q·k/√d) divided by the number of visible keys, in place of softmax. Wortsman
// et al. 2023, arXiv:2309.08586, section 3. Time 4·n²·d FLOPs (causal: half), tiled: memory n·d.
#include "variants/api/variant_info.h"
#include "variants/reference/scores.h"
#include "variants/scores/scores.h"

namespace attn::variants {
namespace {

class Relu final : public Attention {
 public:
  explicit Relu(const AttentionConfig& config) : Attention(config) {}

 private:
  // Causal, query i divides by i + 1, never by the length: a prefix is answered as it stands alone.
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return relu_attention(q, k, v, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override { return relu_cost(shape); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return relu_decoder(position, capacity);
  }
};

}  // namespace

VariantInfo relu() {
  return {.name = "relu",
          .family = "other scores",
          .summary = "relu in place of softmax, divided by the number of visible keys",
          .paper = "Wortsman et al. 2023, arXiv:2309.08586, section 3",
          .cost_formula = "4·n²·d FLOPs, causal 2·n·(n+6)·d; memory n·d",
          .traits =
              {.causal = true, .cross = true, .permutable = true, .decode = true, .rowwise = true},
          .params = {},
          .make = make_as<Relu>,
          .reference = [](const ReferenceInputs& x) {
            return oracle::relu_attention(x.q, x.k, x.v, x.visible());
          }};
}

}  // namespace attn::variants
