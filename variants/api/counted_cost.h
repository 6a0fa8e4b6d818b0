// What a variant costs as the counters saw it: what stands for the cost formulas of a variant that
// declares none, and what the checks hold declared formulas against.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "variants/api/variant_info.h"

namespace attn {

struct CountedCost {
  double flops = 0;  // of one forward without gradients, by the kernels' counters
  double peak_bytes =
      0;  // of the pool above q, k, v, gates and weights: what Cost::peak_bytes declares
};

// Of the second of two forwards on N(0, 1) inputs; of mix() where it is a mixer. Bytes moved cannot
// be counted. Resets the pool's peak. The figures may depend on the number of threads.
CountedCost counted_cost(const Attention& attention, const AttentionShape& shape);

// What a decoder of batch and kv_len of the shape holds, with keys and values of kv_heads heads (0:
// as many as query heads); nullopt where the variant cannot decode there. Makes the variant,
// causal, and that decoder.
std::optional<double> held_state_bytes(const VariantInfo& info,
                                       const std::map<std::string, ParamValue>& given,
                                       const AttentionShape& shape, int64_t kv_heads = 0);

}  // namespace attn
