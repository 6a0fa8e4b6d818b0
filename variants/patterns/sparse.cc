// sparse: softmax attention to keys near a query and to some further ones, a stride apart. Child et
// al. 2019, arXiv:1904.10509, sections 4.2 and 4.3; both sets of a pattern in one head, merged; see
// strided_attention.h. Time 4·n·(2·stride + n/stride)·d (fixed: 4·n·(stride + summary·n/stride)·d),
// O(n·√n·d) at the paper's stride of √n; memory n·d. The paper is causal; else j > i count too.
#include <algorithm>
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/reference/patterns.h"
#include "variants/patterns/patterns.h"

namespace attn::variants {
namespace {

class Sparse final : public Attention {
 public:
  explicit Sparse(const AttentionConfig& config)
      : Attention(config), pattern_(SparsePattern::of(config)) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return sparse_attention(q, k, v, pattern_, mask.kv_lengths);
  }
  Cost do_cost(const AttentionShape& shape) const override { return sparse_cost(shape, pattern_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return pattern_decoder(position, capacity, sparse_cache(pattern_, capacity));
  }

  SparsePattern pattern_;
};

oracle::Array sparse_reference(const ReferenceInputs& x) {
  const Params& p = x.params();
  const bool lra = p.text("as") == "lra";
  int64_t stride = p.integer("stride");
  if (stride == 0)
    stride = lra ? 128 : std::lround(std::sqrt(static_cast<double>(x.config.max_len)));
  const int64_t summary = std::min(stride, p.integer("summary"));
  if (lra) return softmax_where(x, oracle::arena_fixed(stride, summary));
  return softmax_where(
      x, p.text("pattern") == "fixed" ? oracle::fixed(stride, summary) : oracle::strided(stride));
}

}  // namespace

VariantInfo sparse() {
  return {
      .name = "sparse",
      .family = "pattern",
      .summary = "softmax attention to near keys and to every stride-th, or to summaries",
      .paper = "Child et al. 2019, arXiv:1904.10509, sections 4.2 and 4.3",
      .cost_formula =
          "strided: 4·n·(2·stride + n/stride)·d FLOPs, fixed: 4·n·(stride + "
          "summary·n/stride)·d, causal half; memory n·d",
      .traits = {.causal = true, .convex = true, .decode = true},
      .params = {ParamSpec("pattern", {"strided", "fixed"},
                           "neighbours and every stride-th key; or blocks and summaries")
                     .when("as", "paper"),
                 {"stride", 0,
                  "reach of neighbours and step between further keys; 0: nearest to √n", 0},
                 ParamSpec("summary", 32, "last positions of each block that others see")
                     .when("pattern", "fixed")
                     .when("as", "lra"),
                 {"as", {"paper", "lra"}, "lra: fixed, one summary more, always causal"}},
      .make = make_as<Sparse>,
      .reference = sparse_reference,
      .limit = limit_at_length("stride", {{"as", std::string("paper")}}),
      .always_causal = [](const Params& params) { return params.text("as") == "lra"; },
      .notes = {"The paper is causal; elsewhere the same sets without j <= i. `stride=0`: n is the "
                "longest length that the model is built for (`stretch` counts); 128 as=lra.",
                "as=lra: Long Range Arena's code: fixed, a block's first position a summary too, "
                "causal even where the model is not; its masking of n×n weights is left out."}};
}

}  // namespace attn::variants
