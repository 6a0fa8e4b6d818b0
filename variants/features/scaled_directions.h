// The directions of random feature attention: ω = σ ⊙ w with fixed random w and a learned scale σ
// of each number of a head's rows. Peng et al. 2021, arXiv:2103.02143, section 3.1.
#pragma once

#include "core/autograd/var.h"

namespace attn {

// w [heads, directions, dim], scales [heads, dim] -> [heads, directions, dim], as an op.
Var scaled_directions(const Tensor& w, const Var& scales);

}  // namespace attn
