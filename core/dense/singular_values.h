// The singular value decomposition of a square matrix of any rank, in double, in a workspace of the
// caller: a pivoted QR decomposition, then rotations of pairs of its rows (Hestenes 1958; Drmač and
// Veselić 2008). Some 30·n³ FLOPs. A divide and conquer, as Eigen's, fails on uniform weights.
#pragma once

#include <cstdint>

namespace attn_dense {

// Of the workspace of find_singular_values().
inline int64_t singular_value_doubles(int64_t n) { return 4 * n * n + n; }

// matrix = left·diag(values)·rightᵀ, left and right orthogonal, all [n, n] by columns. Values fall;
// those beyond the numerical rank are 0. All entries of `matrix` must be finite, and one of them
// not 0. `space` holds left, right, two parts [n, n] that are free again afterwards, and values.
void find_singular_values(int64_t n, const double* matrix, double* space);

}  // namespace attn_dense
