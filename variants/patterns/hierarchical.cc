// hierarchical: H-Transformer-1D. Softmax attention that is exact in near blocks and sees means of
// 2, 4, 8, … positions further away. Zhu and Soricut 2021, arXiv:2107.11906. Time 18·n·block·d,
// causal 9·n·block·d; memory n·d. See hierarchical_attention.h.
#include <cmath>
#include <cstdlib>

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

// The size of the means through which i sees j: that of the finest level whose blocks of i and j
// are the same or neighbours.
int64_t mean_size(int64_t i, int64_t j, int64_t block) {
  int64_t size = 1;
  while (std::abs(i / (block * size) - j / (block * size)) > 1) size *= 2;
  return size;
}

// The means of x over blocks of each size, of the positions before valid(b).
class Means {
 public:
  Means(const oracle::Array& x, std::function<int64_t(int64_t b)> valid)
      : x_(x), valid_(std::move(valid)) {}

  oracle::Row of(int64_t b, int64_t h, int64_t i, int64_t size) {
    auto at = by_size_.find(size);
    if (at == by_size_.end()) at = by_size_.emplace(size, over(size)).first;
    return at->second.row(b, h, i / size);
  }

 private:
  oracle::Array over(int64_t size) const {
    oracle::Array means(x_.batch, x_.heads, (x_.len + size - 1) / size, x_.dim);
    for (int64_t b = 0; b < x_.batch; ++b)
      for (int64_t h = 0; h < x_.heads; ++h)
        for (int64_t j = 0; j < valid_(b); ++j) {
          const int64_t first = j / size * size, last = std::min(first + size, valid_(b));
          oracle::add_times(1 / static_cast<double>(last - first), x_.line(b, h, j),
                            means.line(b, h, j / size), x_.dim);
        }
    return means;
  }

  const oracle::Array& x_;
  std::function<int64_t(int64_t b)> valid_;
  std::map<int64_t, oracle::Array> by_size_;
};

oracle::Array hierarchical_reference(const ReferenceInputs& x) {
  const int64_t block = x.params().integer("block");
  const bool causal = x.mask.causal;
  oracle::Visibility seen = x.visible();
  seen.allows = [&](int64_t b, int64_t, int64_t i, int64_t) { return causal || i < x.valid(b); };
  const auto valid = [&](int64_t b) { return x.valid(b); };
  Means of_k(x.k, valid), of_q(x.q, valid);
  return oracle::average(x.q, x.v, seen, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    const int64_t size = mean_size(i, j, block);
    const oracle::Row query = causal ? x.q.row(b, h, i / size * size) : of_q.of(b, h, i, size);
    return oracle::dot(query, of_k.of(b, h, j, size)) / std::sqrt(static_cast<double>(x.q.dim));
  });
}

}  // namespace

VariantInfo hierarchical() {
  return {
      .name = "hierarchical",
      .family = "pattern",
      .summary = "softmax attention, exact in near blocks, to means of positions further away",
      .paper = "Zhu and Soricut 2021 (H-Transformer-1D), arXiv:2107.11906",
      .cost_formula = "18·n·block·d FLOPs, causal 9·n·block·d; memory n·d",
      .traits = {.causal = true, .linear_time = true, .convex = true},
      .params = {{"block", 64, "positions of a block, and means of a block of each level; even", 2,
                  1 << 20}},
      .make = make_as<Hierarchical>,
      .reference = hierarchical_reference,
      .limit = [](const AttentionShape& shape) -> std::optional<VariantInfo::Limit> {
        return VariantInfo::Limit{.params = {{"block", shape.kv_len + shape.kv_len % 2}}};
      },
      .skip_reason = [](const AttentionShape&, const Params& params) -> std::optional<std::string> {
        if (params.integer("block") % 2 == 0) return std::nullopt;
        return "a block has two halves, the blocks of the finer level: block must be even";
      },
      .notes =
          {"As the authors' code (google/flaxformer): a block sees itself and both neighbours, at "
           "each coarser level both neighbours less what the finer level has. Causal, the first "
           "query of a cell stands for the cell, for a mean would hold later ones. "
           "Beside padding a mean here is of the positions that are left, there of the finer "
           "means. "
           "Left out: biases of relative positions, and linear kernels in place of means. The "
           "paper's block is 16, which fills fewer registers.",
           "A mean counts as often as it has positions, so that weights sum to one, and all levels "
           "share one softmax. Popular PyTorch code (lucidrains/h-transformer-1d) lets a block see "
           "only the other one of its pair, counts a mean once, subtracts a maximum of each level, "
           "and has a level too few: the halves of a sequence never meet.",
           "Lengths need not be powers of two: means at the end and beside padding have fewer "
           "positions."}};
}

}  // namespace attn::variants
