// The logistic function and tanh as straight-line arithmetic that compilers vectorise: about 25
// operations. Absolute error below 2 units in the last place of 1; ends and NaN as of std::.
#pragma once

#include "core/kernels/exp.h"
#include "core/real.h"

namespace attn {

inline real sigmoid_at(real x) { return 1 / (1 + fast_exp(-x)); }
inline real tanh_at(real x) { return 1 - 2 / (1 + fast_exp(2 * x)); }

}  // namespace attn
