// Products and decompositions of matrices in double, by Eigen. Matrices are [rows, columns], stored
// by columns without gaps, unless said otherwise. Both builds (float and double) link one copy, in
// a namespace of its own: Eigen's templates take seconds to compile.
#pragma once

#include <cstdint>
#include <vector>

namespace attn_dense {

enum class Side { plain, transposed };

// c [rows, cols] = op(a)·op(b), where op(a) is [rows, inner]. 2·rows·inner·cols FLOPs.
void product(int64_t rows, int64_t inner, int64_t cols, Side of_a, const double* a, Side of_b,
             const double* b, double* c);

// b [n, cols] becomes op(a)⁺·b, for a [n, n] of any rank: a complete orthogonal decomposition, so
// that the residual stays small however close to singular a is. About 4/3·n³ + 3·n²·cols FLOPs.
void solve_any_rank(int64_t n, int64_t cols, Side of_a, const double* a, double* b);

// x [n, n] becomes the Q of x = Q·R where the diagonal of R is positive: of Gaussian numbers, a
// rotation that is Haar distributed.
void orthonormalise(int64_t n, double* x);

// The singular values of x [n, n] from the largest to the smallest; none where a number is not
// finite. About 8/3·n³ FLOPs.
std::vector<double> singular_values_of(int64_t n, const double* x);

}  // namespace attn_dense
