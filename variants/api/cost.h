// The size of an attention problem, and what one forward of it costs by formula.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "variants/api/cache_type.h"

namespace attn {

struct AttentionShape {
  int64_t batch = 1, heads = 1, q_len = 1, kv_len = 1, head_dim = 1;
  bool causal = false;
  Dtype dtype = Dtype::float32;          // of q, k, v and the output
  CacheType cache = CacheType::float32;  // of the decoder's keys and values, see Attention::decoder
};

// The cost of one forward pass by formula, without gradients. A multiply-add counts as 2 FLOPs;
// exp, divisions and maxima count as none. A variant need not declare a cost: counted_cost.h then
// counts.
struct Cost {
  double flops = 0;
  double backward_flops =
      0;             // of all gradients; 0 stands for 2 * flops, the cost without recomputation
  double bytes = 0;  // that must be read or written: q, k, v, gates, the output, and data that does
                     // not fit a workspace of the size of a cache
  double peak_bytes =
      0;  // peak memory above q, k, v, gates and weights: output, temporaries, workspace
  double state_bytes =
      0;  // of the decoder's state after kv_len tokens; variants with trait `decode`
  double sequence_state_bytes = 0;  // of state_bytes: what all heads of a sequence share
  bool declared = true;  // false: no cost is declared, and the other fields are meaningless
  // FLOPs of the gradients depend on the data: those of a row are counted, and backward_flops is an
  // estimate for forecasts.
  bool backward_depends_on_data = false;
};

}  // namespace attn
