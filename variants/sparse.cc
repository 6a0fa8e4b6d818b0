// sparse: softmax attention to keys near a query and to some further ones, a stride apart. Child et
// al. 2019, arXiv:1904.10509, sections 4.2 and 4.3: one head attends to both sets of its pattern,
// merged. strided: those within `stride` positions, and every stride-th; fixed: the own block of
// `stride`, and the last `summary` of each. Time 4·n·(2·stride + n/stride)·d (fixed: 4·n·(stride +
// summary·n/stride)·d), which is O(n·√n·d) at stride √n; memory n·d. The paper is causal; else the
// same sets, without j <= i.
#include <algorithm>

#include "core/check.h"
#include "variants/attention.h"
#include "variants/kernels/pattern_decoder.h"
#include "variants/kernels/strided_attention.h"

namespace attn::variants {
namespace {

class Sparse final : public Attention {
 public:
  explicit Sparse(const AttentionConfig& config) : Attention(config) {
    const bool lra = params().text("as") == "lra";
    pattern_ = {.fixed = lra || params().text("pattern") == "fixed",
                .stride = params().integer("stride"),
                .summary = std::min(params().integer("summary"), params().integer("stride")),
                .first = lra,
                .causal = lra || config.causal};
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return sparse_attention(q, k, v, pattern_, mask.kv_lengths);
  }

  Cost do_cost(const AttentionShape& shape) const override {
    Cost cost = sparse_cost(shape, pattern_);
    cost.state_bytes =
        sizeof(real) * 2 * static_cast<double>(shape.batch * shape.heads) *
        static_cast<double>(shape.head_dim * sparse_cache(pattern_, shape.kv_len).slots);
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return pattern_decoder(position, capacity, sparse_cache(pattern_, capacity));
  }

  SparsePattern pattern_;
};

}  // namespace

VariantInfo sparse() {
  return {.name = "sparse",
          .family = "pattern",
          .summary = "softmax attention to near keys and to every stride-th, or to summaries",
          .paper = "Child et al. 2019, arXiv:1904.10509, sections 4.2 and 4.3",
          .cost_formula =
              "strided: 4·n·(2·stride + n/stride)·d FLOPs, causal half; fixed: 4·n·(stride + "
              "summary·n/stride)·d, causal half; memory 5·n·d. as=lra: Long Range Arena's code: "
              "fixed, with the first position of a block a summary too, and causal even where the "
              "model is not (it also masks n×n weights: that cost is left out)",
          .traits = {.causal = true, .convex = true, .decode = true},
          .params = {{"pattern", std::vector<std::string>{"strided", "fixed"},
                      "strided: neighbours and every stride-th key; fixed: blocks and summaries"},
                     {"stride", 128, "reach of the neighbours, and the step between further keys"},
                     {"summary", 32, "last positions of each block that others see (fixed)"},
                     {"as", std::vector<std::string>{"paper", "lra"},
                      "lra: Long Range Arena's code: fixed, one summary more, always causal"}},
          .make = make_as<Sparse>,
          .limit =
              [](const AttentionShape& shape) {
                return VariantInfo::Limit{
                    .params = {{"stride", shape.kv_len}, {"as", std::string("paper")}},
                    .prepare = {}};
              },
          .skip_reason = {}};
}

}  // namespace attn::variants
