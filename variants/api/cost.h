// The size of an attention problem, and what one forward of it costs by formula.
#pragma once

#include <cstdint>

namespace attn {

struct AttentionShape {
  int64_t batch = 1, heads = 1, q_len = 1, kv_len = 1, head_dim = 1;
  bool causal = false;
};

// By formula, for one forward without gradients. FLOPs count a multiply-add as 2 and leave out exp,
// divisions and maxima. Declaring it is optional: see counted_cost.h for what is counted instead.
struct Cost {
  double flops = 0;
  double backward_flops =
      0;             // of all gradients; 0: twice `flops`, what ops without recomputation cost
  double bytes = 0;  // read and written at least once: q, k, v, the output, and what does not fit a
                     // cache-sized workspace
  double peak_bytes =
      0;  // pool peak above q, k, v and the weights: the output, temporaries and workspace
  double state_bytes =
      0;  // what decoding one more token needs to keep, after kv_len tokens, where trait decode is
  bool declared = true;  // false: the variant declares none, and nothing above says anything
};

}  // namespace attn
