// bigbird: softmax attention between blocks: each block of queries sees its neighbours, the blocks
// at both ends, whose queries see everything, and a few drawn at random. Zaheer et al. 2020,
// arXiv:2007.14062, section 2 and appendix D (internal global tokens). Time 4·n·block·(window +
// global + random)·d, memory n·d. The last block is that of the valid keys, not of the padding.
// Causal, where the paper has no form: only the first end is global, and random blocks are past.
#include <array>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "variants/api/expecting.h"
#include "variants/api/packing.h"
#include "variants/api/variant_info.h"
#include "variants/patterns/patterns.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

RandomBlocks blocks_of(const AttentionConfig& config) {
  const Params& p = config.params;
  return {.size = p.integer("block"),
          .before = (p.integer("window_blocks") - 1) / 2,
          .after = config.causal ? 0 : p.integer("window_blocks") / 2,
          .first = (p.integer("global_blocks") + 1) / 2,
          .last = config.causal ? 0 : p.integer("global_blocks") / 2,
          .random = p.integer("random_blocks"),
          .pool = p.text("as") == "lra" ? 1024 : std::numeric_limits<int64_t>::max(),
          .causal = config.causal,
          .seed = config.seed};
}

class BigBird final : public Attention, public ExpectsSequences {
 public:
  explicit BigBird(const AttentionConfig& config) : Attention(config), blocks_(blocks_of(config)) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask, q.dim(2)));
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask, q.dim(2)));
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return softmax_cost(shape, {.pattern = pattern(shape.q_len, {})});
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return pattern_decoder(position, capacity, blocks_.cache(config().heads, capacity));
  }
  void do_expect(const Packing& packing) const override { last_.keep(packing.distinct()); }

  SoftmaxOptions options_of(const Mask& mask, int64_t n) const {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    return {.causal = mask.causal, .kv_lengths = lengths, .pattern = pattern(n, lengths)};
  }
  // Of valid lengths of a batch, or, where these are empty, of whole sequences.
  std::shared_ptr<const BlockPattern> pattern(int64_t n,
                                              const std::vector<int64_t>& lengths) const {
    return last_.get({n, IndexList(lengths.begin(), lengths.end())}, [&] {
      const std::span<const int64_t> whole(&n, 1);
      return blocks_.pattern(config().heads, n, lengths.empty() ? whole : lengths);
    });
  }

  RandomBlocks blocks_;
  Cached<std::pair<int64_t, IndexList>, BlockPattern> last_;
};

// The random blocks are those that RandomBlocks draws; all others are written out here.
oracle::Array big_bird_reference(const ReferenceInputs& x) {
  const RandomBlocks blocks = blocks_of(x.config);
  const bool causal = x.mask.causal;
  std::map<std::array<int64_t, 3>, std::set<int64_t>> drawn;  // by head, block, number of blocks
  oracle::Visibility seen = x.visible();
  seen.allows = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t count = (x.valid(b) + blocks.size - 1) / blocks.size;
    const int64_t own = i / blocks.size, key = j / blocks.size;
    const auto global = [&](int64_t block) {
      return block < blocks.first || (block >= count - blocks.last && block < count);
    };
    const auto named = [&](int64_t block) {
      return global(block) || (own - blocks.before <= block && block <= own + blocks.after);
    };
    if (global(own) || named(key)) return true;
    const auto [at, is_new] = drawn.try_emplace({h, own, count});
    if (is_new) {
      IndexList all;
      blocks.append(h, own, count, all);
      for (const int64_t block : all)
        if (!named(block)) at->second.insert(block);
      int64_t eligible = 0;
      const int64_t end = std::min(causal ? own + 1 : count, blocks.pool / blocks.size);
      for (int64_t block = 0; block < std::min(end, count); block++) eligible += !named(block);
      ATTN_CHECK(std::ssize(at->second) == std::min(blocks.random, eligible),
                 "{} random blocks of {}, {} wanted", at->second.size(), eligible, blocks.random);
    }
    return at->second.contains(key);
  };
  return oracle::softmax_attention(x.q, x.k, x.v, seen);
}

}  // namespace

VariantInfo bigbird() {
  return {
      .name = "bigbird",
      .family = "pattern",
      .summary = "softmax attention between blocks: neighbours, both ends and random ones",
      .paper = "Zaheer et al. 2020, arXiv:2007.14062, section 2",
      .cost_formula =
          "4·n·block·(window_blocks + 2·global_blocks + random_blocks)·d FLOPs, causal about "
          "half the window and no last block; memory n·d",
      .traits = {.causal = true,
                 .linear_time = true,
                 .random = true,
                 .convex = true,
                 .decode = true,
                 .bfloat16 = true},
      .params = {{"block", 64, "positions of a block"},
                 {"window_blocks", 3, "neighbouring blocks seen, the own one among them"},
                 {"global_blocks", 2, "blocks that see all and are seen, half at either end", 0},
                 {"random_blocks", 3, "further blocks seen, drawn for each block and head", 0},
                 {"as", {"paper", "lra"}, "lra: random blocks from the first 1024 positions"}},
      .make = make_as<BigBird>,
      .reference = big_bird_reference,
      .limit = limit_at_length("block", {{"as", std::string("paper")}}),
      .notes = {
          "The paper has no causal form: here only the first end is global, and random blocks "
          "are past. Global tokens are of the sequence itself (ITC).",
          "as=lra: Long Range Arena's code draws random blocks from the first 1024 positions "
          "alone, and fills sequences up with rows of zeros that are seen, which is left "
          "out."}};
}

}  // namespace attn::variants
