// The gradient of the pair biases of aft: a tile of targets and sources at a time.
#pragma once

#include "variants/synthetic/exponential_sums.h"

namespace attn {

// With P = e^(k_jc + w_tj + x_tc), the gradient of w_tj is Σ_c P·(a_tc·v_jc - b_tc). Adds those of
// left and right [len, rank], or of distances [heads, count] to `right`. `pairs` are those of the
// forward pass.
void add_bias_gradient(const ExponentialPairs& pairs, const Biases& biases, const SourceRows& keys,
                       const SourceRows& queries, real* left, real* right);

// For each pair of a tile 4·dim a head and 6·rank.
double bias_gradient_flops(const ExponentialPairs& pairs);

}  // namespace attn
