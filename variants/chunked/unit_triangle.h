// The inverse of I + A for a strictly lower triangular A, as the products of Householder-like maps
// need it (the UT transform of Joffrain et al. 2006, ACM TOMS 32(2)). n³/3 FLOPs a matrix.
#pragma once

#include "core/autograd/var.h"

namespace attn {

// a [.., n, n] -> (I + strictly lower part of a)⁻¹; what stands on and above the diagonal is not
// read, and its gradient is 0.
Var unit_triangle_inverse(const Var& a);

}  // namespace attn
