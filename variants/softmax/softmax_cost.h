// The cost of tiled softmax attention, by counting its tiles and strips.
#pragma once

#include "variants/api/cost.h"
#include "variants/softmax/softmax_attention.h"
#include "variants/softmax/softmax_tiles.h"

namespace attn {

// One forward without gradients. kv_lengths are ignored; `causal` is that of the shape. FLOPs are
// the executed ones: those of visible pairs and of masked pairs that share a strip of 6 queries (24
// in the backward) with visible ones.
Cost softmax_cost(const AttentionShape& shape, const SoftmaxOptions& options = {});

// FLOPs of one forward and its backward, and the workspace of the forward. Includes the effect of
// the problem's kv_lengths.
struct SoftmaxWork {
  double flops = 0, backward_flops = 0, workspace_bytes = 0;
};
SoftmaxWork softmax_work(const SoftmaxProblem& problem);

}  // namespace attn
