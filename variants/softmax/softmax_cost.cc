// Counts the tiles and strips that the kernels execute; see softmax_cost.h. O(n / strip); with a
// pattern or kv_lengths, for each head.
#include "variants/softmax/softmax_cost.h"

#include "core/base/workers.h"
#include "variants/softmax/forward_layout.h"
#include "variants/softmax/softmax_backward.h"
#include "variants/softmax/softmax_decoder.h"

namespace attn {

SoftmaxWork softmax_work(const SoftmaxProblem& p) {
  const int64_t heads = p.batch * p.heads;
  const ForwardDivision division(p);
  double pairs = 0, backward_pairs = 0;
  const bool alike = p.kv_lengths.empty() && !p.pattern;
  for (int64_t head = 0; head < (alike ? std::min<int64_t>(1, heads) : heads); ++head) {
    const Band band = p.band(head / p.heads);
    const double count = alike ? static_cast<double>(heads) : 1;
    pairs += count * executed_pairs(band, p.pattern.get(), head, division.tiles, kForwardStrip);
    backward_pairs += count * softmax_backward_pairs(band, p.pattern.get(), head);
  }
  const double dims = static_cast<double>(p.dim + p.value_dim);
  int64_t bytes = workspace_bytes(division.tasks(), ForwardLayout(p, division.tiles).total);
  if (division.parts > 1)
    bytes +=
        static_cast<int64_t>(sizeof(real)) * division.tasks() * division.part_reals(p.value_dim);
  if (packs_ahead(p))
    bytes += static_cast<int64_t>(sizeof(real)) * heads * packed_key_reals(p, p.kv_len);
  // Four products in the backward for the forward's two, and the logits made again.
  return {2 * dims * pairs, (4 * dims + 2 * static_cast<double>(p.dim)) * backward_pairs,
          static_cast<double>(bytes)};
}

Cost softmax_cost(const AttentionShape& shape, const SoftmaxOptions& options) {
  SoftmaxProblem p{.batch = shape.batch,
                   .heads = shape.heads,
                   .q_len = shape.q_len,
                   .kv_len = shape.kv_len,
                   .dim = shape.head_dim,
                   .value_dim = shape.head_dim,
                   .dtype = shape.dtype};
  p.left = options.before < 0 ? options.window : options.before;
  p.right = options.window;
  p.causal = shape.causal;
  p.global = options.global;
  p.pattern = options.pattern;
  const SoftmaxWork work = softmax_work(p);
  const auto size = static_cast<double>(size_of(shape.dtype));
  const double all = static_cast<double>(shape.batch * shape.heads),
               width = all * static_cast<double>(shape.head_dim);
  const double rows = width * static_cast<double>(shape.q_len),
               keys = width * static_cast<double>(shape.kv_len);
  const int64_t kept = p.left < 0 ? shape.kv_len : std::min(p.left + 1 + p.global, shape.kv_len);
  const double state = shape.cache == CacheType::float32
                           ? size * 2 * width * static_cast<double>(kept)
                           : static_cast<double>(typed_cache_bytes(
                                 shape.cache, shape.batch * shape.heads, kept, shape.head_dim));
  return {.flops = work.flops,
          .backward_flops = work.backward_flops,
          .bytes = size * 2 * (rows + keys),
          .peak_bytes = size * rows + work.workspace_bytes,
          .state_bytes = state};
}

}  // namespace attn
