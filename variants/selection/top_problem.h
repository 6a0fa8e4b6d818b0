// The problem of top_attention.h, the workspace of its forward, and what its backward needs.
// Internal to top_*.cc.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/base/memory.h"
#include "core/base/workspace.h"
#include "core/simd/top_rows.h"
#include "variants/api/mask.h"
#include "variants/selection/index_rows.h"
#include "variants/selection/top_strip.h"

namespace attn {

inline constexpr int64_t kTopStrip = 24;       // queries: those that read a panel of keys together
inline constexpr int64_t kTopShortStrip = 12;  // where the lists are long
inline constexpr int64_t kTopLongList = 128;

inline int64_t top_strip(int64_t keep) { return keep > kTopLongList ? kTopShortStrip : kTopStrip; }

// Keys that a causal query i sees of `all` that are valid.
inline int64_t top_visible(int64_t i, int64_t q_len, int64_t all, int64_t kv_len, int64_t block) {
  const int64_t ended = block > 0 ? (i + 1) / block : i + kv_len - q_len + 1;
  return std::clamp<int64_t>(ended, 0, all);
}

struct TopProblem {
  Tensor q, k, v;
  IndexScores index;
  Mask mask;
  int64_t keep;
  int64_t block;  // positions that a key stands for; 0: keys are positions

  TopProblem(const Tensor& queries, const Tensor& keys, const Tensor& values, int64_t most,
             const Mask& given, const IndexScores& scores, int64_t positions = 0)
      : q(queries),
        k(keys),
        v(values),
        index(scores),
        mask(given),
        keep(std::max<int64_t>(1, std::min(most, keys.dim(2)))),
        block(positions) {
    mask.edges = nullptr;
  }
  int64_t heads() const { return q.dim(0) * q.dim(1); }
  // Of keys: one of each head, or of the heads that share the indexer's.
  int64_t choices() const { return index.defined() ? index.choices() : heads(); }
  int64_t heads_of_choice() const { return heads() / choices(); }
  int64_t q_len() const { return q.dim(2); }
  int64_t kv_len() const { return k.dim(2); }
  int64_t dim() const { return q.dim(3); }
  real scale() const { return static_cast<real>(1 / std::sqrt(static_cast<double>(dim()))); }
  int64_t length(int64_t head) const {
    return mask.kv_lengths.empty() ? kv_len()
                                   : mask.kv_lengths[static_cast<size_t>(head / q.dim(1))];
  }
  // Keys that query i may see: the first ones. Of blocks, those that have ended.
  int64_t visible(int64_t head, int64_t i) const {
    const int64_t all = length(head);
    return mask.causal ? top_visible(i, q_len(), all, kv_len(), block) : all;
  }
  const Tensor& scored_keys() const { return index.defined() ? index.k : k; }
};

// Offsets into a worker's workspace.
struct TopLayout {
  int64_t rows, stride, scores, width, products, lists, logits, places, total;

  TopLayout(int64_t q_len, int64_t kv_len, int64_t keep, int64_t index_heads) {
    WorkspaceParts parts;
    rows = std::min(q_len, top_strip(keep));
    stride = std::min(kTopSpan, (kv_len + kPanel - 1) / kPanel * kPanel);
    scores = parts.take(rows * stride);
    width = std::min(kTopPiece, stride);
    products = parts.take(rows * index_heads * width);
    lists = parts.take(rows * TopList::reals(std::min(keep, kv_len)));
    logits = parts.take(std::min(keep, kv_len));
    places = parts.take(std::min(keep, kv_len));
    total = parts.total();
  }
};

// What the backward needs: keys and weights of each query.
struct KeptKeys {
  explicit KeptKeys(const TopProblem& p)
      : most(std::min(p.keep, p.kv_len())),
        block(static_cast<size_t>(p.heads() * p.q_len() * most) * sizeof(int32_t),
              MemoryScope::current()),
        weights({p.heads(), p.q_len(), most}) {}

  int64_t most;
  Block block;
  Tensor weights;  // [heads, q_len, most]

  int32_t* places(int64_t row) const { return static_cast<int32_t*>(block.data()) + row * most; }
  real* of_query(int64_t row) const { return weights.data() + row * most; }
};

// Adds the gradients of q, k and v to grads[0..2], along the keys that were kept. grad_log_sum
// [batch, heads, q_len]; undefined: zeros.
void top_backward(const TopProblem& problem, const KeptKeys& kept, const Tensor& grad,
                  std::span<Tensor> grads, const Tensor& grad_log_sum = {});

}  // namespace attn
