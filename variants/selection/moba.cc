// moba: softmax attention of each query to its own block, up to itself, and to the earlier blocks
// whose mean keys have the largest product with it, in one softmax. Lu et al. 2025,
// arXiv:2502.13189, eqs. 2-9. Time 4·n·blocks·block·d + n²/block·d, memory n·d.
#include "core/base/check.h"
#include "variants/api/variant_info.h"
#include "variants/reference/selection.h"
#include "variants/selection/selection.h"

namespace attn::variants {
namespace {

class Moba final : public Attention {
 public:
  explicit Moba(const AttentionConfig& config)
      : Attention(config),
        block_(params().integer("block")),
        most_(params().integer("blocks") - 1) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    BlockGrid grid{q.dim(0), q.dim(1), q.dim(2), q.dim(3), block_};
    grid.lengths.assign(mask.kv_lengths.begin(), mask.kv_lengths.end());
    std::shared_ptr<const BlockQueries> queries;
    {
      const ChosenBlocks chosen(grid, most_);
      choose_by_means(q.value(), k.value(), chosen);
      queries = std::allocate_shared<BlockQueries>(Recycled<BlockQueries>(), chosen);
    }
    return block_attention(grid, q, k, v, queries);
  }

  Cost do_cost(const AttentionShape& s) const override {
    const BlockGrid grid{s.batch, s.heads, s.q_len, s.head_dim, block_};
    const double heads = static_cast<double>(grid.heads()), d = static_cast<double>(s.head_dim);
    const BlockWork work = block_work(grid, most_);
    const double inputs = sizeof(real) * 4 * heads * d * static_cast<double>(s.q_len);
    const auto lists = static_cast<double>(BlockQueries::bytes(grid, most_));
    return {.flops = work.flops + 2 * d * heads * mean_choice_pairs(grid, most_),
            .backward_flops = work.backward_flops,
            .bytes = inputs + lists,
            .peak_bytes = std::max(lists + work.peak_bytes, mean_choice_bytes(grid, most_)),
            .state_bytes = static_cast<double>(
                block_state_bytes(grid.heads(), s.kv_len, s.head_dim, block_, false))};
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return mean_choice_decoder(position, capacity, block_, most_);
  }

  int64_t block_, most_;
};

oracle::Array moba_reference(const ReferenceInputs& x) {
  const int64_t size = x.params().integer("block"), most = x.params().integer("blocks") - 1;
  oracle::Array means(x.k.batch, x.k.heads, (x.k.len + size - 1) / size, x.k.dim);
  for (int64_t b = 0; b < x.k.batch; ++b)
    for (int64_t h = 0; h < x.k.heads; ++h)
      for (int64_t block = 0; block * size < x.valid(b); ++block)
        oracle::add_times(1, oracle::block_mean(x.k, b, h, block, size, x.valid(b)).data(),
                          means.line(b, h, block), x.k.dim);
  return oracle::chosen_blocks(
      x.q, x.k, x.v, x.mask.kv_lengths, size,
      [&](int64_t b, int64_t h, int64_t i) {
        std::vector<std::pair<double, int64_t>> scores;
        for (int64_t block = 0; block < i / size; ++block)
          if (block * size < x.valid(b))
            scores.emplace_back(oracle::dot(x.q.row(b, h, i), means.row(b, h, block)), block);
        return oracle::largest(std::move(scores), most);
      },
      x.rows);
}

}  // namespace

VariantInfo moba() {
  return {
      .name = "moba",
      .family = "selection",
      .summary = "softmax attention to the own block and earlier ones of the best mean keys",
      .paper = "Lu et al. 2025, arXiv:2502.13189, eqs. 2-9",
      .cost_formula = "4·n·block·(blocks - 1/2)·d + n²/block·d FLOPs; memory n·(2·d + blocks)",
      .traits = {.causal = true, .convex = true, .decode = true},
      .params = {{"block", 64, "positions of a block", 1, 65536},
                 {"blocks", 4, "blocks that a query attends to, its own among them", 1, 65536}},
      .make = make_as<Moba>,
      .reference = moba_reference,
      .limit = [](const AttentionShape& s) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"blocks", s.kv_len}}};
      },
      .causal_alone = true,
      .notes = {
          "The paper defines causal attention alone. Query heads that share keys still choose "
          "each for itself, as there.",
          "Of equal scores the earlier block is chosen. The choice has no gradient. The paper's "
          "code and fla count the own block among `blocks` too; fla's defaults are block=256, "
          "blocks=4. Their decoders attend to all keys; this one chooses as the forward does.",
          "Blocks lie at multiples of `block`: a shifted sequence has other outputs."}};
}

}  // namespace attn::variants
