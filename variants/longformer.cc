// longformer: a sliding window and global tokens under one softmax. Beltagy et al. 2020,
// arXiv:2004.05150, sections 3.1 and 4.3 (the window of 512). Time 4·n·(2w+1+2g)·d, memory n·d. The
// first `global_tokens` positions see, and are seen by, every position. Global queries use the same
// projections as the others, from which the paper's own start as copies: an attention gets q, k, v.
#include <algorithm>

#include "variants/attention.h"
#include "variants/kernels/pattern_decoder.h"
#include "variants/kernels/softmax_attention.h"

namespace attn::variants {
namespace {

class Longformer final : public Attention {
 public:
  explicit Longformer(const AttentionConfig& config) : Attention(config) {
    const bool lra = params().text("as") == "lra";
    options_.window = params().integer("window");
    if (lra) options_.before = options_.window - 1;
    options_.pinned = lra ? 0 : params().integer("global_tokens");
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    SoftmaxOptions options = options_;
    options.causal = mask.causal;
    options.kv_lengths = mask.kv_lengths;
    return softmax_attention(q, k, v, options);
  }
  Cost do_cost(const AttentionShape& shape) const override { return softmax_cost(shape, options_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t pinned = std::min(options_.pinned, capacity);
    const int64_t ring = std::min(capacity - pinned, before() + 1);
    return pattern_decoder(
        position, capacity,
        {.slots = pinned + ring,
         .place = [=](int64_t at) { return at < pinned ? at : pinned + (at - pinned) % ring; },
         .seen =
             [=](int64_t, int64_t at) {
               return std::vector{Span{0, std::min(at + 1, pinned + ring)}};
             }});
  }

  int64_t before() const { return options_.before < 0 ? options_.window : options_.before; }

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
          "queries; memory n·d. as=lra: Long Range Arena's code, without global tokens, one "
          "key less before a query (it also masks n×n weights: that cost is left out)",
      .traits = {.causal = true, .linear_time = true, .convex = true, .decode = true},
      .params = {{"window", 256,
                  "keys seen on each side of a query, besides its own (causal: before it)"},
                 {"global_tokens", 1,
                  "first positions, such as a classification token, that see all and are seen", 0},
                 {"as", std::vector<std::string>{"paper", "lra"},
                  "lra: Long Range Arena's code, window-1 keys before a query and none global"}},
      .make = make_as<Longformer>,
      .limit =
          [](const AttentionShape& shape) {
            return VariantInfo::Limit{.params = {{"window", shape.kv_len}}, .prepare = {}};
          },
      .skip_reason = {}};
}

}  // namespace attn::variants
