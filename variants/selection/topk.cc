// topk: softmax attention of each query to the keys of its largest logits, which are all made
// first: what choosing keys by their scores can reach at best. Gupta et al. 2021, arXiv:2106.06899,
// section
// 2. Time 2·n²·d (causal half) and 2·n·keys·d, memory n·d: scores in tiles.
#include "variants/api/variant_info.h"
#include "variants/reference/selection.h"
#include "variants/selection/selection.h"

namespace attn::variants {
namespace {

class TopK final : public Attention {
 public:
  explicit TopK(const AttentionConfig& config)
      : Attention(config), keys_(params().integer("keys")) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return top_attention(q, k, v, keys_, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override { return top_cost(shape, keys_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return top_decoder(position, capacity, keys_);
  }

  int64_t keys_;
};

}  // namespace

VariantInfo topk() {
  return {.name = "topk",
          .family = "selection",
          .summary = "softmax attention to the keys of each query's largest logits",
          .paper = "Gupta et al. 2021, arXiv:2106.06899, section 2",
          .cost_formula =
              "2·n²·d + 2·n·keys·d FLOPs, causal n·(n+48)·d + 2·n·keys·d; memory n·d, with "
              "gradients n·(d + 2·keys)",
          .traits = {.causal = true,
                     .cross = true,
                     .convex = true,
                     .permutable = true,
                     .decode = true,
                     .rowwise = true},
          .params = {{"keys", 32, "keys that a query attends to", 1, 65536}},
          .make = make_as<TopK>,
          .reference =
              [](const ReferenceInputs& x) {
                return oracle::top_attention(x.q, x.k, x.v, x.visible(), x.params().integer("keys"),
                                             [&](int64_t b, int64_t h, int64_t i, int64_t j) {
                                               return oracle::dot(x.q.row(b, h, i),
                                                                  x.k.row(b, h, j));
                                             });
              },
          .limit = limit_at_length("keys"),
          .notes = {
              "Of equal logits the earlier key is larger. What is chosen has no gradient: the "
              "backward goes along the keys that the forward kept.",
              "Logits are divided by √d; the authors' code leaves the scale out, and lets a query "
              "without keys average padding, where it is 0 here.",
              "All logits are made, in tiles: this is the bound of what a cheaper choice can "
              "reach, not a cheaper attention."}};
}

}  // namespace attn::variants
