// nsa: native sparse attention: three branches, each with a softmax of its own, times gates: means
// of whole blocks, blocks that the weights of the first choose, and a window. Yuan et al. 2025,
// arXiv:2502.11089, eqs. 5-12. Time 2·n²/block·d + 4·n·(blocks·block + window)·d, memory 6·n·d.
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/reference/selection.h"
#include "variants/selection/selection.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Nsa final : public GatedAttention {
 public:
  explicit Nsa(const AttentionConfig& config)
      : GatedAttention(config),
        options_{.block = params().integer("block"),
                 .most = params().integer("blocks") - 1,
                 .shared = params().integer("shared_by"),
                 .window = params().integer("window")} {}

 private:
  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    BlockGrid grid{q.dim(0), q.dim(1), q.dim(2), q.dim(3), options_.block};
    grid.lengths.assign(mask.kv_lengths.begin(), mask.kv_lengths.end());
    std::array<Var, kBranches> branches;
    std::shared_ptr<const BlockQueries> queries;
    {
      const ChosenBlocks chosen(grid, options_.most);
      branches[2] = compressed_attention(q, block_mean_rows(grid, k), block_mean_rows(grid, v),
                                         options_.shared, chosen);
      queries = std::allocate_shared<BlockQueries>(Recycled<BlockQueries>(), chosen);
    }
    branches[0] = block_attention(grid, q, k, v, queries);
    queries.reset();
    branches[1] = softmax_attention(
        q, k, v, {.causal = true, .kv_lengths = mask.kv_lengths, .window = options_.window});
    return gated_branches(branches, gates[0], mask.kv_lengths);
  }

  Cost do_cost(const AttentionShape& s) const override { return branch_cost(s, options_); }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return branch_decoder(position, capacity, options_);
  }

  BranchOptions options_;
};

// The means come last, since a sequence without a whole block does not read their gate.
std::vector<GateInput> nsa_gates(const AttentionConfig& config) {
  return {{.name = "branches",
           .help = "x of the gates σ(x) of the chosen blocks, the window and the means",
           .width = kBranches,
           .read = [block = config.params.integer("block")](int64_t len) {
             return len < block ? kBranches - 1 : kBranches;
           }}};
}

oracle::Array nsa_reference(const ReferenceInputs& x) {
  return oracle::native_sparse_attention(
      x.q, x.k, x.v, x.gates[0], x.mask.kv_lengths,
      {x.params().integer("block"), x.params().integer("blocks"), x.params().integer("shared_by"),
       x.params().integer("window")},
      x.rows);
}

}  // namespace

VariantInfo nsa() {
  return {
      .name = "nsa",
      .family = "selection",
      .summary = "gated sum of attention to block means, to chosen blocks and to a window",
      .paper = "Yuan et al. 2025, arXiv:2502.11089, eqs. 5-12",
      .cost_formula =
          "2·n²/block·d + 4·n·(blocks·block + window)·d FLOPs; memory n·(6·d + 2·blocks); "
          "in a layer 6·n·width·heads more",
      .traits = {.causal = true, .decode = true, .gated = true},
      .params = {{"block", 64, "positions of a block, of the means and of the choice", 1, 65536},
                 {"blocks", 16,
                  "blocks of the second branch: the first, the query's own, the one "
                  "before, and others that are chosen",
                  3, 65536},
                 {"window", 511,
                  "keys before the query, besides its own, that the third branch sees"},
                 {"shared_by", 1, "neighbouring query heads that choose blocks together", 1, 4096}},
      .make = make_as<Nsa>,
      .reference = nsa_reference,
      .skip_reason = [](const AttentionShape& shape,
                        const Params& params) -> std::optional<std::string> {
        const int64_t shared = params.integer("shared_by");
        if (shape.heads % shared == 0) return std::nullopt;
        return fmt::format("{} heads are not a multiple of shared_by {}", shape.heads, shared);
      },
      .gates = nsa_gates,
      .causal_alone = true,
      .notes = {
          "Means stand for the paper's learned compression, over the blocks that are chosen among, "
          "as in fla's code; the paper's blocks of 32 positions at a stride of 16 overlap. Keys "
          "are "
          "as the layer makes them: rotated, where the layer rotates.",
          "Where query heads share keys (kv_heads), the paper's choice is one for all of them: set "
          "shared_by to their number. The weights of the means are summed over these heads; of "
          "equal "
          "ones the earlier block is chosen. The choice has no gradient.",
          "A query before the end of the first block has no means: that branch is 0. Weights sum "
          "to "
          "the sum of the gates, which is no limit of softmax attention. The window counts as in "
          "truncated: 511 keys and the own one, the paper's 512.",
          "Blocks lie at multiples of `block`: a shifted sequence has other outputs. Rows of "
          "padding "
          "have no gates, and are 0."}};
}

}  // namespace attn::variants
