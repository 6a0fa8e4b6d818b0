// local: softmax attention within contiguous blocks of positions, and to whole neighbouring blocks
// where asked. Liu et al. 2018, arXiv:1801.10198, section 4.2.4 (blocks of 256). Time
// 4·n·block·(1 + look_back + look_ahead)·d, memory n·d. as=lra: what Long Range Arena's code
// computes instead, see grouped_attention.h.
#include "variants/api/expecting.h"
#include "variants/api/packing.h"
#include "variants/api/variant_info.h"
#include "variants/reference/patterns.h"
#include "variants/patterns/patterns.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Local final : public Attention, public ExpectsSequences {
 public:
  explicit Local(const AttentionConfig& config)
      : Attention(config),
        lra_(params().text("as") == "lra"),
        blocks_{.size = params().integer("block"),
                .back = params().integer("look_back"),
                .ahead = config.causal ? 0 : params().integer("look_ahead")} {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (lra_) return grouped_attention(q, k, v, blocks_.size, mask.kv_lengths);
    return softmax_attention(q, k, v, options_of(mask, q.dim(2)));
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask, q.dim(2)));
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return lra_ ? grouped_cost(shape, blocks_.size) : blocks_.cost(shape);
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return pattern_decoder(position, capacity, blocks_.cache(capacity));
  }
  void do_expect(const Packing& packing) const override { last_.keep(packing.distinct()); }

  SoftmaxOptions options_of(const Mask& mask, int64_t n) const {
    return {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .pattern = last_.get(n, [&] {
              return blocks_.pattern(n);
            })};
  }

  bool lra_;
  NeighbourBlocks blocks_;
  Cached<int64_t, BlockPattern> last_;
};

oracle::Array local_reference(const ReferenceInputs& x) {
  const Params& p = x.params();
  const int64_t size = p.integer("block");
  if (p.text("as") == "paper")
    return softmax_where(x, oracle::blocks(size, p.integer("look_back"),
                                           x.config.causal ? 0 : p.integer("look_ahead")));
  oracle::Visibility seen = x.visible();
  seen.allows = [&](int64_t b, int64_t, int64_t i, int64_t j) {
    return oracle::reshaped_blocks(size, x.valid(b))(i, j);
  };
  return oracle::softmax_attention(x.q, x.k, x.v, seen);
}

}  // namespace

VariantInfo local() {
  return {
      .name = "local",
      .family = "pattern",
      .summary = "softmax attention within contiguous blocks of positions",
      .paper = "Liu et al. 2018, arXiv:1801.10198, section 4.2.4",
      .cost_formula =
          "4·n·block·(1 + look_back + look_ahead)·d FLOPs, causal 4·n·block·(1/2 + look_back)·d; "
          "memory n·d; as=lra 4·n·block·d",
      .traits =
          {.causal = true, .linear_time = true, .convex = true, .decode = true, .bfloat16 = true},
      .params =
          {{"block", 256, "positions of a block"},
           ParamSpec("look_back", 0, "blocks seen before a query's own", 0).when("as", "paper"),
           ParamSpec("look_ahead", 0, "blocks seen after it, where not causal", 0)
               .when("as", "paper"),
           {"as", {"paper", "lra"}, "lra: groups of positions n/block apart"}},
      .make = make_as<Local>,
      .reference = local_reference,
      .limit = limit_at_length("block", {{"as", std::string("paper")}}),
      .skip_reason = [](const AttentionShape& shape,
                        const Params& params) -> std::optional<std::string> {
        if (!shape.causal || params.text("as") == "paper") return std::nullopt;
        return "as=lra cannot be causal: its groups change with the length";
      },
      .notes = {"as=lra: not the paper's blocks, but what Long Range Arena's code makes of them: "
                "groups of positions n/block apart; theirs is block=50. Padding is hidden, which "
                "their code confuses."},
      .bfloat16_if = [](const Params& params) { return params.text("as") == "paper"; }};
}

}  // namespace attn::variants
