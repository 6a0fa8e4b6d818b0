// dilated: LongNet. Softmax attention inside segments, and inside longer ones to every ratio-th
// position, mixed by their denominators. Ding et al. 2023, arXiv:2307.02486, eqs. 4-10. Time
// 4·n·segment·(1 + 1/ratio + 1/ratio² + …)·d, memory n·d. See dilated_attention.h.
#include <cmath>

#include "variants/api/variant_info.h"
#include "variants/patterns/patterns.h"
#include "variants/reference/patterns.h"

namespace attn::variants {
namespace {

class DilatedSegments final : public Attention {
 public:
  explicit DilatedSegments(const AttentionConfig& config)
      : Attention(config),
        pattern_{.segment = params().integer("segment"),
                 .ratio = params().integer("ratio"),
                 .levels = params().integer("levels"),
                 .causal = config.causal} {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return dilated_attention(q, k, v, pattern_, mask.kv_lengths);
  }
  Cost do_cost(const AttentionShape& shape) const override { return dilated_cost(shape, pattern_); }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return pattern_decoder(position, capacity,
                           dilated_cache(pattern_, position[1] * position[2], capacity));
  }

  DilatedPattern pattern_;
};

// How many levels show key j to query i: so often it counts.
oracle::Array dilated_reference(const ReferenceInputs& x) {
  const int64_t levels = x.params().integer("levels"), ratio = x.params().integer("ratio");
  const auto count = [&](int64_t h, int64_t i, int64_t j) {
    int64_t times = 0, step = 1, length = x.params().integer("segment");
    for (int64_t l = 0; l < levels; ++l, step *= ratio, length *= ratio) {
      const auto sharing = static_cast<int64_t>(
          std::ceil(static_cast<double>(x.q.heads) / static_cast<double>(step)));
      const int64_t offset = h / sharing;
      if (i / length == j / length && i % length % step == offset && j % length % step == offset)
        ++times;
    }
    return times;
  };
  oracle::Visibility seen = x.visible();
  seen.allows = [&](int64_t, int64_t h, int64_t i, int64_t j) { return count(h, i, j) > 0; };
  return oracle::average(x.q, x.v, seen, [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return oracle::dot(x.q.row(b, h, i), x.k.row(b, h, j)) /
               std::sqrt(static_cast<double>(x.q.dim)) +
           std::log(static_cast<double>(count(h, i, j)));
  });
}

}  // namespace

VariantInfo dilated() {
  return {
      .name = "dilated",
      .family = "pattern",
      .summary = "softmax attention inside segments, the longer ones with gaps",
      .paper = "Ding et al. 2023 (LongNet), arXiv:2307.02486, eqs. 4-10",
      .cost_formula = "4·n·segment·(1 + 1/ratio + 1/ratio² + …)·d FLOPs, causal half; memory n·d",
      .traits = {.causal = true, .linear_time = true, .convex = true, .decode = true},
      .params = {{"segment", 512, "positions of a segment of the first level", 1, 1 << 20},
                 {"levels", 4, "segment lengths, each with a dilation", 1, 16},
                 {"ratio", 2, "of the lengths and of the dilations from level to level", 1, 16}},
      .make = make_as<DilatedSegments>,
      .reference = dilated_reference,
      .limit = limit_at_length("segment", {{"levels", int64_t{1}}}),
      .notes = {
          "Lengths are segment·ratio^level, dilations ratio^level, from 1 on; the paper's are "
          "2048, "
          "4096, … with 1, 2, 4, 6, 12: segment=2048,levels=5 is near. The offset of a head is one "
          "for ⌈heads/dilation⌉ neighbouring heads, as in the authors' code. With fewer heads than "
          "a "
          "dilation, some positions of its level belong to no head.",
          "A key on several lists counts as often. The gradient is that of the joint softmax; the "
          "authors' code takes the mixture for constant, treats a log-sum-exp of exactly 0 as "
          "missing, and attends to the zeros that pad a segment."}};
}

}  // namespace attn::variants
