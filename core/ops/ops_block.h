// Differentiable ops of the layers that papers put around a mixer: a short convolution over
// positions, SiLU and mixtures of two rows; norms and gates are in ops_gated_norm.h. A wrong shape
// is an Error.
#pragma once

#include "core/autograd/var.h"

namespace attn {

Var silu(const Var& a);  // x·σ(x). Elfwing et al. 2017, arXiv:1702.03118

// Causal depthwise convolution: y_t = bias + Σ_j taps_j ⊙ x_{t-last+j}, where `last` is the index
// of the last tap; positions before the first hold zeros. x [batch, len, channels], taps [count,
// channels], bias [channels] or undefined. With `activated`, silu(y). One pass over x.
Var short_convolution(const Var& x, const Var& taps, const Var& bias, bool activated);

// Taps [2, channels] with which short_convolution() gives the row before: 1, then 0.
Var previous_taps(int64_t channels);

// x + (other - x) ⊙ (share + more): rows between x and `other`, both [.., width]. share [width];
// more as x, or undefined: 0. One pass.
Var mix_rows(const Var& x, const Var& other, const Var& share, const Var& more);

}  // namespace attn
