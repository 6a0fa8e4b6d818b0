// Weights, cost and decoding of each kind of logits of the synthesizer. Kinds: dense, random,
// factorized_dense, factorized_random, and mixed, which is biased_attention().
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
  double deviation;  // standard deviation of the initial values
};
// The weights of a kind. Initial logits have variance 1 for inputs of variance 1; those of a mixed
// kind are as small as with Glorot initialisation.
std::vector<SyntheticFactor> synthetic_factors(const std::string& kind,
                                               const AttentionConfig& config, int64_t rank);

Cost synthetic_cost(const AttentionShape& shape, const std::string& kind,
                    std::span<const Var> factors);

SyntheticLogits synthetic_logits(const std::string& kind, std::span<const Var> factors);

}  // namespace attn
