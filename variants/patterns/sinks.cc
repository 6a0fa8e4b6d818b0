// sinks: the first positions, on which models leave weight that no key deserves, and a window of
// the last ones. Xiao et al. 2023, arXiv:2309.17453, section 3.2 (StreamingLLM), as a mask: j < s
// or i-w < j <= i. Time 4·n·(s+w)·d FLOPs, memory n·d; a decoder holds s + w positions.
#include "variants/api/variant_info.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Sinks final : public Attention {
 public:
  explicit Sinks(const AttentionConfig& config) : Attention(config) {
    options_.causal = true;
    options_.window = params().integer("window") - 1;  // beside the query's own position
    options_.global = params().integer("sinks");
  }

 private:
  // Causal, a global position is seen by all later ones and sees what any query at its place would.
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask));
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask));
  }
  Cost do_cost(const AttentionShape& shape) const override {
    AttentionShape causal = shape;
    causal.causal = true;
    return softmax_cost(causal, options_);
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return band_softmax_decoder(position, capacity, options_.window, options_.global);
  }

  SoftmaxOptions options_of(const Mask& mask) const {
    SoftmaxOptions options = options_;
    options.kv_lengths = mask.kv_lengths;
    return options;
  }

  SoftmaxOptions options_;
};

}  // namespace

VariantInfo sinks() {
  return {
      .name = "sinks",
      .family = "pattern",
      .summary = "softmax attention to the first positions and to a window; causal always",
      .paper = "Xiao et al. 2023, arXiv:2309.17453, section 3.2",
      .cost_formula =
          "4·n·(window+sinks)·d FLOPs, and 20·n·d at the edges of strips of 6 "
          "queries; memory n·d",
      .traits =
          {.causal = true, .linear_time = true, .convex = true, .decode = true, .bfloat16 = true},
      .params = {{"window", 512, "last positions that a query sees, its own included"},
                 {"sinks", 4, "first positions that every later query sees", 0}},
      .make = make_as<Sinks>,
      .reference =
          [](const ReferenceInputs& x) {
            const int64_t window = x.params().integer("window"),
                          first = x.params().integer("sinks");
            return softmax_where(
                x, [=](int64_t i, int64_t j) { return j <= i && (j < first || j > i - window); });
          },
      // Under a causal mask: no window shows the future.
      .limit = [reach = limit_at_length("window")](
                   const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
        return shape.causal ? reach(shape) : std::nullopt;
      },
      .always_causal = [](const Params&) { return true; },
      .notes = {"The paper counts rotary positions inside its cache: the distance of a sink is "
                "then that of its slot. Here positions, where a layer has them, are absolute, "
                "so that decoding equals the causal forward.",
                "The paper's scripts keep 4 sinks and 2000 positions."}};
}

}  // namespace attn::variants
