// nsa: native sparse attention: three branches, each with a softmax of its own, times gates: one
// row for each block of positions, made by a small network; blocks that the weights of the first
// choose; and a window. Yuan et al. 2025, arXiv:2502.11089, eqs. 5-12. Time 2·n²/stride·d +
// 4·n·(blocks·block + window)·d + 8·n·d², memory 6·n·d.
#include "core/ops/ops.h"
#include "variants/api/gated_attention.h"
#include "variants/api/variant_info.h"
#include "variants/reference/selection.h"
#include "variants/selection/selection.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

bool is_learned(const Params& params) { return params.text("compression") == "learned"; }

CompressedBlocks compressed_of(const Params& params) {
  if (is_learned(params))
    return {params.integer("compress_block"), params.integer("compress_stride")};
  return {params.integer("block"), params.integer("block")};
}

class Nsa final : public GatedAttention {
 public:
  explicit Nsa(const AttentionConfig& config)
      : GatedAttention(config),
        options_{.block = params().integer("block"),
                 .most = params().integer("blocks") - 1,
                 .shared = params().integer("shared_by"),
                 .window = params().integer("window"),
                 .compressed = compressed_of(params())} {
    if (!is_learned(params())) return;
    options_.keys = network("compress_k");
    options_.values = network("compress_v");
  }

 private:
  BlockNetwork network(const std::string& name) {
    const int64_t d = config().head_dim, block = options_.compressed.block;
    constexpr double kPositions = 0.02;  // as embeddings often start
    BlockNetwork made;
    made.position = normal_weight(name + "_position", {block, d}, kPositions);
    made.up = glorot_weight(name + "_up", {block * d, d});
    made.down = glorot_weight(name + "_down", {d, d});
    return made;
  }

  Var compressed(const BlockGrid& grid, const BlockNetwork& by, const Var& x,
                 const Mask& mask) const {
    if (!by.defined()) return block_mean_rows(grid, x);
    return network_rows(options_.compressed, by, zero_padding(x, mask.kv_lengths));
  }

  Var do_gated_forward(const Var& q, const Var& k, const Var& v, std::span<const Var> gates,
                       const Mask& mask) const override {
    BlockGrid grid{q.dim(0), q.dim(1), q.dim(2), q.dim(3), options_.block};
    grid.lengths.assign(mask.kv_lengths.begin(), mask.kv_lengths.end());
    std::array<Var, kBranches> branches;
    std::shared_ptr<const BlockQueries> queries;
    {
      const ChosenBlocks chosen(grid, options_.most);
      const Var keys = compressed(grid, options_.keys, k, mask),
                values = compressed(grid, options_.values, v, mask);
      branches[2] =
          compressed_attention(q, keys, values, options_.compressed, options_.shared, chosen);
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

// The compressed rows come last, since a sequence without a whole block does not read their gate.
std::vector<GateInput> nsa_gates(const AttentionConfig& config) {
  return {{.name = "branches",
           .help = "x of the gates σ(x) of the chosen blocks, the window and the compressed rows",
           .width = kBranches,
           .read = [block = compressed_of(config.params).block](int64_t len) {
             return len < block ? kBranches - 1 : kBranches;
           }}};
}

oracle::Array nsa_reference(const ReferenceInputs& x) {
  const CompressedBlocks of = compressed_of(x.params());
  oracle::OfBlock keys, values;
  if (is_learned(x.params())) {
    keys = oracle::network_of_block(&x.weights[0]);
    values = oracle::network_of_block(&x.weights[3]);
  }
  return oracle::native_sparse_attention(
      x.q, x.k, x.v, x.gates[0], x.mask.kv_lengths,
      {x.params().integer("block"), x.params().integer("blocks"), x.params().integer("shared_by"),
       x.params().integer("window"), of.block, of.stride, keys, values},
      x.rows);
}

std::optional<std::string> why_no_grid(const AttentionShape& shape, const Params& params) {
  const int64_t shared = params.integer("shared_by");
  if (shape.heads % shared != 0)
    return fmt::format("{} heads are not a multiple of shared_by {}", shape.heads, shared);
  const CompressedBlocks of = compressed_of(params);
  const int64_t block = params.integer("block");
  if (of.block % of.stride != 0 || block % of.stride != 0)
    return fmt::format("compress_stride {} divides not both compress_block {} and block {}",
                       of.stride, of.block, block);
  return std::nullopt;
}

}  // namespace

VariantInfo nsa() {
  return {
      .name = "nsa",
      .family = "selection",
      .summary = "gated sum of attention to compressed blocks, to chosen blocks and to a window",
      .paper = "Yuan et al. 2025, arXiv:2502.11089, eqs. 5-12",
      .cost_formula =
          "2·n²/stride·d + 4·n·(blocks·block + window)·d FLOPs, and compression=learned "
          "4·n·(compress_block + 1)/stride·d²; memory n·(6·d + 2·blocks); in a layer "
          "6·n·width·heads more",
      .traits = {.causal = true, .decode = true, .nonlinear = true, .gated = true},
      .params =
          {{"block", 64, "positions of a block that is chosen", 1, 65536},
           {"blocks", 16,
            "blocks of the second branch: the first, the query's own, the one "
            "before, and others that are chosen",
            3, 65536},
           {"window", 511, "keys before the query, besides its own, that the third branch sees"},
           {"shared_by", 1, "neighbouring query heads that choose blocks together", 1, 4096},
           {"compression",
            {"learned", "mean"},
            "what makes a row of a block for the first branch: learned, a network over "
            "compress_block positions; mean, the mean of a block that is chosen"},
           ParamSpec("compress_block", 32, "positions that the network makes one row", 1, 4096)
               .when("compression", "learned"),
           ParamSpec("compress_stride", 16,
                     "positions from one such block to the next; divides both sizes of blocks", 1,
                     4096)
               .when("compression", "learned")},
      .make = make_as<Nsa>,
      .reference = nsa_reference,
      .skip_reason = why_no_grid,
      .gates = nsa_gates,
      .causal_alone = true,
      .notes =
          {"compress_k_position [compress_block, d], compress_k_up [compress_block·d, d] and "
           "compress_k_down [d, d], and those of compress_v, are the networks gelu((x + P)·U)·D "
           "over the positions of a block side by side, one for keys and one for values, each of "
           "all heads. The paper calls them an MLP with positions inside the block and names no "
           "width; here the hidden layer has head_dim. Outputs are then no linear function of "
           "the values. compression=mean is linear, and what fla's code has, over the blocks "
           "that are chosen among. Keys are as the layer makes them: rotated, where the layer "
           "rotates.",
           "The score of a block is the sum of the weights of the rows, each as often as both "
           "share a stride. Where query heads share keys (kv_heads), the paper's choice is one "
           "for all of them: set shared_by to their number, over which scores are summed. Of "
           "equal scores the earlier block is chosen. The choice has no gradient.",
           "A query before the end of the first compressed block has no rows: that branch is 0. "
           "Weights sum to the sum of the gates, which is no limit of softmax attention. The "
           "window counts as in truncated: 511 keys and the own one, the paper's 512.",
           "Blocks lie at multiples of `block` and of compress_stride: a shifted sequence has "
           "other outputs. Rows of padding have no gates, and are 0."},
      .heads_meet = [](const Params& params) { return params.integer("shared_by") > 1; }};
}

}  // namespace attn::variants
