// bigbird: softmax attention between blocks: each block of queries sees its neighbours, the blocks
// at both ends, whose queries see everything, and a few drawn at random. Zaheer et al. 2020,
// arXiv:2007.14062, section 2 and appendix D (internal global tokens). Time 4·n·block·(window +
// global + random)·d, memory n·d. The last block is that of the valid keys, not of the padding.
// Causal, where the paper has no form: only the first end is global, and random blocks are past.
#include <algorithm>
#include <set>

#include "core/rng.h"
#include "variants/attention.h"
#include "variants/kernels/block_lists.h"
#include "variants/kernels/pattern_decoder.h"
#include "variants/kernels/softmax_attention.h"

namespace attn::variants {
namespace {

class BigBird final : public Attention {
 public:
  explicit BigBird(const AttentionConfig& config)
      : Attention(config),
        block_(params().integer("block")),
        before_((params().integer("window_blocks") - 1) / 2),
        after_(config.causal ? 0 : params().integer("window_blocks") / 2),
        first_((params().integer("global_blocks") + 1) / 2),
        last_(config.causal ? 0 : params().integer("global_blocks") / 2),
        random_(params().integer("random_blocks")) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    const std::vector<int64_t>& lengths = mask.kv_lengths;
    return softmax_attention(
        q, k, v,
        {.causal = mask.causal,
         .kv_lengths = lengths,
         .pattern = pattern(q.dim(2), lengths.empty() ? std::vector{k.dim(2)} : lengths)});
  }

  Cost do_cost(const AttentionShape& shape) const override {
    return softmax_cost(shape, {.pattern = pattern(shape.q_len, {shape.kv_len})});
  }

  // Lists for each of the lengths and each head.
  std::shared_ptr<const BlockPattern> pattern(int64_t n,
                                              const std::vector<int64_t>& lengths) const {
    const int64_t heads = config().heads;
    return block_lists(n, block_, std::ssize(lengths) * heads, [&](int64_t set, int64_t b) {
      const int64_t length = lengths[static_cast<size_t>(set / heads)];
      return blocks(set % heads, b, (length + block_ - 1) / block_);
    });
  }

  // What block b of queries sees of `count` blocks of keys, ascending.
  std::vector<int64_t> blocks(int64_t head, int64_t b, int64_t count) const {
    std::set<int64_t> seen;
    const auto add = [&](int64_t begin, int64_t end) {
      for (int64_t i = std::max<int64_t>(begin, 0); i < std::min(end, count); ++i) seen.insert(i);
    };
    const bool global = b < first_ || (b >= count - last_ && b < count);
    if (global) add(0, config().causal ? b + 1 : count);
    add(0, config().causal ? std::min(first_, b + 1) : first_);
    add(count - last_, count);
    add(b - before_, b + after_ + 1);
    const int64_t choice = config().causal ? std::min(b + 1, count) : count;
    Rng random = rng(config().seed, "bigbird.blocks", static_cast<uint64_t>(head << 32 | b));
    for (int64_t i = 0; i < random_ && std::ssize(seen) < choice; ++i)
      seen.insert(unseen(seen, static_cast<int64_t>(random.below(
                                   static_cast<uint64_t>(choice - std::ssize(seen))))));
    return {seen.begin(), seen.end()};
  }

  static int64_t unseen(const std::set<int64_t>& seen, int64_t rank) {  // from 0
    for (const int64_t block : seen) rank += block <= rank;
    return rank;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return pattern_decoder(
        position, capacity,
        {.slots = capacity,
         .place = [](int64_t at) { return at; },
         .seen = [self = *this](int64_t head, int64_t at) { return self.seen(head, at); }});
  }

  std::vector<Span> seen(int64_t head, int64_t at) const {  // causal
    std::vector<Span> spans;
    for (const int64_t b : blocks(head % config().heads, at / block_, at / block_ + 1))
      spans.push_back({b * block_, std::min((b + 1) * block_, at + 1)});
    return spans;
  }

  int64_t block_, before_, after_, first_, last_, random_;
};

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
      .traits = {.causal = true, .linear_time = true, .convex = true, .decode = true},
      .params = {{"block", 64, "positions of a block"},
                 {"window_blocks", 3, "neighbouring blocks seen, the own one among them"},
                 {"global_blocks", 2, "blocks that see all and are seen, half at either end", 0},
                 {"random_blocks", 3, "further blocks seen, drawn for each block and head", 0}},
      .make = make_as<BigBird>,
      .limit =
          [](const AttentionShape& shape) {
            return VariantInfo::Limit{.params = {{"block", shape.kv_len}}, .prepare = {}};
          },
      .skip_reason = {}};
}

}  // namespace attn::variants
