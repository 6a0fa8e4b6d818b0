// FLOPs of the dense parts of a multi-head layer: its projections and its feed-forward.
#pragma once

#include "variants/api/variant_info.h"

namespace attn {

struct DenseLayer {
  double tokens = 0;  // of all sequences of a batch
  int64_t heads = 1;
  int64_t width = 1;         // heads · head_dim
  int64_t feed_forward = 1;  // hidden width
  double kept = 1;           // heads of keys and values over query heads
};

// Of one forward pass: projections of queries, keys and values as far as the variant reads them,
// those of gates, and that of the output; a mixer has none of these. The feed-forward as the
// variant has it. Of a stack, the mean of its layers. `params` are complete.
double dense_flops(const VariantInfo& info, const Params& params, const DenseLayer& layer);

}  // namespace attn
