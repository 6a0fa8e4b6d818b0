// oracle_rank: softmax attention with the best approximation of its weights of rank `rank`, by
// singular value decomposition: what no variant of that rank can come nearer to. Eckart and Young
// 1936, Psychometrika 1(3). Time 22·n³, memory 5·n². A bound to measure against, not to compute
// with.
#include <string>

#include "core/base/check.h"
#include "variants/api/variant_info.h"
#include "variants/lowrank/lowrank.h"
#include "variants/reference/truncation.h"

namespace attn::variants {
namespace {

constexpr int64_t kLongest =
    512;  // a decomposition then takes about three quarters of a second a head

class OracleRank final : public Attention {
 public:
  explicit OracleRank(const AttentionConfig& config)
      : Attention(config), rank_(params().integer("rank")) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return truncated_attention(q, k, v, rank_, mask.kv_lengths);
  }
  Cost do_cost(const AttentionShape& shape) const override { return truncated_cost(shape, rank_); }

  int64_t rank_;
};

}  // namespace

VariantInfo oracle_rank() {
  return {
      .name = "oracle_rank",
      .family = "low rank",
      .summary = "the best weights of a given rank, from the softmax weights themselves",
      .paper = "Eckart and Young 1936, Psychometrika 1(3)",
      .cost_formula = "22·n³ + 2·n²·d + 4·n·rank·d FLOPs, the first nominal; memory 5·n² in double",
      .traits = {.linear_memory = false, .permutable = true},
      .params = {{"rank", 16, "of the weights of a head"}},
      .make = make_as<OracleRank>,
      .reference =
          [](const ReferenceInputs& x) {
            return oracle::truncated_weights(x.q, x.k, x.v, x.params().integer("rank"),
                                             x.mask.kv_lengths);
          },
      .limit = [](const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"rank", shape.kv_len}}};
      },
      .skip_reason = [](const AttentionShape& shape, const Params&) -> std::optional<std::string> {
        if (shape.kv_len <= kLongest) return std::nullopt;
        return fmt::format("decomposes n×n weights, at most {} positions", kLongest);
      },
      .notes = {"The bound for weights of that rank: nearest to the softmax weights of each "
                "head in Frobenius norm. It is no cheaper attention: it computes all weights "
                "and decomposes them, in double.",
                "Weights may be negative, and rows sum to one only approximately. Queries in "
                "the padding take no part and get zeros.",
                "Gradients are those of the truncated weights. They grow without bound where "
                "the singular values on both sides of the cut meet.",
                "Where a query or key of a head is not finite, all its outputs are NaN."}};
}

}  // namespace attn::variants
