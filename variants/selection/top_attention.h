// Softmax attention of each query to the keys with its largest scores. The scores are logits (Gupta
// et al. 2021, arXiv:2106.06899) or those of an indexer (DeepSeek-V3.2 2025, arXiv:2512.02556).
// Scores are made in tiles: 2·n²·d FLOPs, causal half, and 2·n·keep·d for the values; memory n·d,
// and n·keep where gradients are recorded. The choice has no gradient.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"
#include "variants/selection/index_rows.h"
#include "variants/softmax/softmax.h"

namespace attn {

// q [batch, heads, q_len, dim], k, v [batch, heads, kv_len, dim] -> [batch, heads, q_len, dim]. Of
// equal scores that of the earlier key is larger. Without `index` the scores are q·k. The bits do
// not depend on the number of threads.
Var top_attention(const Var& q, const Var& k, const Var& v, int64_t keep, const Mask& mask,
                  const IndexScores& index = {});

// Of self-attention to rows that stand for `block` positions each: k, v [batch, heads, rows, dim],
// of which query i sees those whose positions have ended, i < (i + 1)/block, and of lengths[b]
// positions (empty: all are valid) the whole blocks. With the log-sum-exps of what is chosen.
SoftmaxResult top_blocks(const Var& q, const Var& k, const Var& v, int64_t keep, int64_t block,
                         std::span<const int64_t> lengths, const IndexScores& index);

// index_heads = 0: without an indexer; `shared`: one for all heads of a sequence. What makes the
// indexer's own rows is not counted. `block` > 0: of top_blocks(), kv_len counts rows.
Cost top_cost(const AttentionShape& shape, int64_t keep, int64_t index_heads = 0,
              int64_t index_dim = 0, bool shared = false, int64_t block = 0);

// Of one query: the weights of `count` listed keys from their logits, in place. e^(scale·logit)
// over its sum. Returns the logarithm of the sum, -infinity of none.
real listed_softmax(int64_t count, real scale, real* logits);

}  // namespace attn
