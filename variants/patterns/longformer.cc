// longformer: a sliding window and global tokens under one softmax. Beltagy et al. 2020,
// arXiv:2004.05150, sections 3.1 and 4.3 (the window of 512). Time 4·n·(2w+1+2g)·d, memory n·d. The
// first `global_tokens` positions see, and are seen by, every position.
#include "variants/api/variant_info.h"
#include "variants/reference/patterns.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Longformer final : public Attention {
 public:
  explicit Longformer(const AttentionConfig& config) : Attention(config) {
    const bool lra = params().text("as") == "lra";
    options_.window = params().integer("window");
    if (lra) options_.before = options_.window > 0 ? options_.window - 1 : 0;
    options_.global = lra ? 0 : params().integer("global_tokens");
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask));
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask));
  }
  Cost do_cost(const AttentionShape& shape) const override { return softmax_cost(shape, options_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t before = options_.before < 0 ? options_.window : options_.before;
    return band_softmax_decoder(position, capacity, before, options_.global);
  }

  SoftmaxOptions options_of(const Mask& mask) const {
    SoftmaxOptions options = options_;
    options.causal = mask.causal;
    options.kv_lengths = mask.kv_lengths;
    return options;
  }

  SoftmaxOptions options_;
};

}  // namespace

VariantInfo longformer() {
  return {
      .name = "longformer",
      .family = "pattern",
      .summary = "softmax attention to a sliding window of keys and to a few global positions",
      .paper = "Beltagy et al. 2020, arXiv:2004.05150, section 3.1",
      .cost_formula =
          "4·n·(2w+1+2g)·d FLOPs, causal 4·n·(w+1+g)·d, and 20·n·d at the edges of strips of 6 "
          "queries; memory n·d",
      .traits =
          {.causal = true, .linear_time = true, .convex = true, .decode = true, .bfloat16 = true},
      .params = {{"window", 256,
                  "keys seen on each side of a query, besides its own (causal: before it)", 0},
                 ParamSpec("global_tokens", 1, "first positions that see all and are seen", 0)
                     .when("as", "paper"),
                 {"as", {"paper", "lra"}, "lra: window-1 keys before a query, and none global"}},
      .make = make_as<Longformer>,
      .reference =
          [](const ReferenceInputs& x) {
            const int64_t window = x.params().integer("window");
            if (x.params().text("as") == "lra")
              return softmax_where(x, oracle::window_and_global(window - 1, window, 0));
            return softmax_where(
                x, oracle::window_and_global(window, window, x.params().integer("global_tokens")));
          },
      .limit = limit_at_length("window", {{"as", std::string("paper")}}),
      .notes = {
          "The paper has no causal form: here the window's first half, and global positions "
          "that are seen. Global queries share the projections, which the paper starts alike.",
          "as=lra: Long Range Arena's code; it masks n×n weights, a cost that is left out."}};
}

}  // namespace attn::variants
