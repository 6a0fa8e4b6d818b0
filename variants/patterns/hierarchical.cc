// hierarchical: H-Transformer-1D. Softmax attention that is exact in near blocks and sees means of
// 2, 4, 8, … positions further away. Zhu and Soricut 2021, arXiv:2107.11906. Time 12·n·block·d,
// causal 2·n·block·(1 + log2(n/block))·d; memory n·d. See hierarchical_attention.h.
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/patterns/patterns.h"
#include "variants/reference/patterns.h"

namespace attn::variants {
namespace {

class Hierarchical final : public Attention {
 public:
  explicit Hierarchical(const AttentionConfig& config)
      : Attention(config), block_(params().integer("block")) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return hierarchical_attention(q, k, v, block_, mask);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return hierarchical_cost(shape, block_);
  }

  int64_t block_;
};

// The size of the means through which i sees j: that of the smallest pair of blocks with both.
int64_t mean_size(int64_t i, int64_t j, int64_t block) {
  int64_t size = 1;
  while (i / (2 * block * size) != j / (2 * block * size)) size *= 2;
  return size;
}

std::vector<double> mean_of(const oracle::Array& x, int64_t b, int64_t h, int64_t i, int64_t size,
                            int64_t valid) {
  std::vector<double> sum(static_cast<size_t>(x.dim));
  const int64_t first = i / size * size, last = std::min(first + size, valid);
  for (int64_t j = first; j < last; ++j)
    for (int64_t c = 0; c < x.dim; ++c)
      sum[static_cast<size_t>(c)] += x.at(b, h, j, c) / static_cast<double>(last - first);
  return sum;
}

oracle::Array hierarchical_reference(const ReferenceInputs& x) {
  const int64_t block = x.params().integer("block");
  oracle::Visibility seen = x.visible();
  seen.allows = [&](int64_t b, int64_t, int64_t i, int64_t) {
    return x.mask.causal || i < x.valid(b);
  };
  return oracle::average(x.q, x.v, seen, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t size = mean_size(i, j, block);
    const auto key = mean_of(x.k, b, h, j, size, x.valid(b));
    const auto query =
        mean_of(x.q, b, h, i, x.mask.causal ? 1 : size, x.mask.causal ? x.q.len : x.valid(b));
    return oracle::dot(query, key) / std::sqrt(static_cast<double>(x.q.dim));
  });
}

}  // namespace

VariantInfo hierarchical() {
  return {
      .name = "hierarchical",
      .family = "pattern",
      .summary = "softmax attention, exact in near blocks, to means of positions further away",
      .paper = "Zhu and Soricut 2021 (H-Transformer-1D), arXiv:2107.11906",
      .cost_formula = "12·n·block·d FLOPs, causal 2·n·block·(1 + log2(n/block))·d; memory n·d",
      .traits = {.causal = true, .convex = true},
      .params = {{"block", 64, "positions of a block, and means of a block of each level", 1,
                  1 << 20}},
      .make = make_as<Hierarchical>,
      .reference = hierarchical_reference,
      .limit = limit_at_length("block"),
      .notes = {"A mean counts as often as it has positions, so that weights sum to one, and all "
                "levels share one softmax. The known code (lucidrains/h-transformer-1d) counts it "
                "once, subtracts a maximum of each level, and has a level too few: the halves of a "
                "sequence never meet. Its block is 16, which fills fewer registers.",
                "Causal, queries are not averaged, for a mean would hold later ones; the later "
                "block of a pair sees the earlier one. Lengths need not be powers of two: means "
                "at the end and beside padding have fewer positions."}};
}

}  // namespace attn::variants
