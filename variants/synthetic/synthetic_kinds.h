// What differs between the kinds of logits of a synthesizer, beside the attention itself: their
// weights, their cost and their decoding. Kinds: dense, random, factorized_dense,
// factorized_random, and mixed, which is biased_attention.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "variants/api/attention.h"
#include "variants/synthetic/synthetic_decoder.h"

namespace attn {

struct SyntheticFactor {
  const char* name;
  Shape shape;       // [heads, rows, cols]
  double deviation;  // of its first values
};
// Logits start with variance 1 where inputs have it; a mixed kind's as small as Glorot's.
std::vector<SyntheticFactor> synthetic_factors(const std::string& kind,
                                               const AttentionConfig& config, int64_t rank);

Cost synthetic_cost(const AttentionShape& shape, const std::string& kind,
                    std::span<const Var> factors);

SyntheticLogits synthetic_logits(const std::string& kind, std::span<const Var> factors);

}  // namespace attn
