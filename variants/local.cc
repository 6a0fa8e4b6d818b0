// local: softmax attention within contiguous blocks of positions, and to whole neighbouring blocks
// where asked. Liu et al. 2018, arXiv:1801.10198, section 4.2.4 (blocks of 256). Time
// 4·n·block·(1 + look_back + look_ahead)·d, memory n·d.
// as=lra: what Long Range Arena's code computes instead. It cuts n positions into groups of `block`
// that lie a stride apart: queries and keys of equal position modulo floor(n / block) + 1.
#include <algorithm>

#include "variants/attention.h"
#include "variants/kernels/block_lists.h"
#include "variants/kernels/pattern_decoder.h"
#include "variants/kernels/softmax_attention.h"
#include "variants/kernels/strided_attention.h"

namespace attn::variants {
namespace {

class Local final : public Attention {
 public:
  explicit Local(const AttentionConfig& config)
      : Attention(config),
        lra_(params().text("as") == "lra"),
        block_(params().integer("block")),
        back_(params().integer("look_back")),
        ahead_(config.causal ? 0 : params().integer("look_ahead")) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    if (lra_) return grouped_attention(q, k, v, block_, mask.kv_lengths);
    return softmax_attention(
        q, k, v,
        {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .pattern = pattern(q.dim(2))});
  }

  Cost do_cost(const AttentionShape& shape) const override {
    if (lra_) return grouped_cost(shape, block_);
    Cost cost = softmax_cost(shape, {.pattern = pattern(shape.q_len)});
    cost.state_bytes *=
        static_cast<double>(slots(shape.kv_len)) / static_cast<double>(shape.kv_len);
    return cost;
  }

  std::shared_ptr<const BlockPattern> pattern(int64_t n) const {
    return block_lists(n, block_, 1, [&](int64_t, int64_t b) {
      std::vector<int64_t> seen;
      const int64_t last = std::min(b + ahead_, (n - 1) / block_);
      for (int64_t key = std::max<int64_t>(0, b - back_); key <= last; ++key) seen.push_back(key);
      return seen;
    });
  }

  int64_t slots(int64_t capacity) const { return std::min(capacity, (1 + back_) * block_); }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    const int64_t ring = slots(capacity), block = block_, back = back_;
    return pattern_decoder(position, capacity,
                           {.slots = ring,
                            .place = [=](int64_t at) { return at % ring; },
                            .seen =
                                [=](int64_t, int64_t at) {
                                  const int64_t first =
                                      std::max<int64_t>(0, at / block - back) * block;
                                  return ring_spans({first, at + 1}, ring);
                                }});
  }

  bool lra_;
  int64_t block_, back_, ahead_;
};

}  // namespace

VariantInfo local() {
  return {
      .name = "local",
      .family = "pattern",
      .summary = "softmax attention within contiguous blocks of positions",
      .paper = "Liu et al. 2018, arXiv:1801.10198, section 4.2.4",
      .cost_formula =
          "4·n·block·(1 + look_back + look_ahead)·d FLOPs, causal 4·n·block·(1/2 + look_back)·d; "
          "memory n·d. as=lra: 4·n·block·d FLOPs, memory 5·n·d; not the paper's blocks but Long "
          "Range Arena's groups of positions a stride of n/block apart, not causal; padding is "
          "hidden, which their code confuses",
      .traits = {.causal = true, .linear_time = true, .convex = true, .decode = true},
      .params = {{"block", 256, "positions of a block"},
                 {"look_back", 0, "blocks seen before a query's own", 0},
                 {"look_ahead", 0, "blocks seen after a query's own, where not causal", 0},
                 {"as", std::vector<std::string>{"paper", "lra"},
                  "lra: groups of positions n/block apart, as in Long Range Arena's code"}},
      .make = make_as<Local>,
      .limit =
          [](const AttentionShape& shape) {
            return VariantInfo::Limit{
                .params = {{"block", shape.kv_len}, {"as", std::string("paper")}}, .prepare = {}};
          },
      .skip_reason = [](const AttentionShape& shape,
                        const Params& params) -> std::optional<std::string> {
        if (!shape.causal || params.text("as") == "paper") return std::nullopt;
        return "as=lra cannot be causal: its groups change with the length";
      }};
}

}  // namespace attn::variants
