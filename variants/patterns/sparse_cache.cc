// Makes a sparse pattern from its parameters, and its cache for decoding. strided: all positions,
// since each can become visible again. fixed: the summary positions of all blocks and the current
// block.
#include <algorithm>
#include <cmath>

#include "variants/patterns/strided_attention.h"

namespace attn {
namespace {

CacheLayout strided_cache(int64_t stride, int64_t capacity) {
  return {.slots = capacity,
          .visible_slots =
              [stride](int64_t, int64_t at) {
                const int64_t near = std::max<int64_t>(0, at - stride + 1);
                return std::vector<Slots>{{at % stride, at, stride}, {near, at + 1}};
              },
          .by_head = false};
}

}  // namespace

SparsePattern SparsePattern::of(const AttentionConfig& config) {
  constexpr int64_t kArenaStride = 128;  // of Long Range Arena's code, at every length
  const Params& given = config.params;
  const bool lra = given.text("as") == "lra";
  int64_t stride = given.integer("stride");
  if (stride == 0)
    stride = lra ? kArenaStride : std::lround(std::sqrt(static_cast<double>(config.max_len)));
  return {.fixed = lra || given.text("pattern") == "fixed",
          .stride = stride,
          .summary = std::min(given.integer("summary"), stride),
          .first = lra,
          .causal = lra || config.causal};
}

int64_t SparsePattern::summaries(int64_t count) const {
  const int64_t last = std::max<int64_t>(0, count % stride - (stride - summary));
  const int64_t ahead = first && summary < stride ? 1 : 0;
  return count / stride * (summary + ahead) + last + (count % stride > 0 ? ahead : 0);
}

CacheLayout sparse_cache(const SparsePattern& pattern, int64_t capacity) {
  if (!pattern.fixed) return strided_cache(pattern.stride, capacity);
  const int64_t stride = pattern.stride, kept = pattern.summaries(capacity);
  const int64_t others = std::min(capacity, stride) - pattern.summaries(std::min(capacity, stride));
  // Of the current block's first `count` positions, those that are no summaries.
  const auto passing = [=](int64_t count) { return count - pattern.summaries(count); };
  return {.slots = kept + others,
          .slot_of =
              [=](int64_t at) {
                const int64_t before = pattern.summaries(at);
                return pattern.summaries(at + 1) > before ? before : kept + passing(at % stride);
              },
          .visible_slots =
              [=](int64_t, int64_t at) {
                return std::vector<Slots>{{0, pattern.summaries(at + 1)},
                                          {kept, kept + passing(at % stride + 1)}};
              },
          .by_head = false};
}

}  // namespace attn
