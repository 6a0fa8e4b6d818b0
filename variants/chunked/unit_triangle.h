// The inverse of I + A for a strictly lower triangular A, as the products of Householder-like maps
// need it (the UT transform of Joffrain et al. 2006, ACM TOMS 32(2)). n³/3 FLOPs a matrix.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace attn {

// a [.., n, n] -> (I + strictly lower part of a)⁻¹; what stands on and above the diagonal is not
// read, and its gradient is 0.
Var unit_triangle_inverse(const Var& a);
// A whole number: the counter's total is exact.
inline double unit_triangle_flops(int64_t matrices, int64_t n) {
  return static_cast<double>(matrices * ((n - 1) * n * (n + 1) / 3));
}

// [n, n], 1 below the diagonal, and on it unless `strict`.
Var lower_triangle(int64_t n, bool strict);
Var identity_matrix(int64_t n);

}  // namespace attn
