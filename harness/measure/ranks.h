// Ranks of a matrix [rows, rows], given row by row, from its singular values. Time O(rows³).
#pragma once

#include <cstdint>
#include <vector>

namespace attn {

// The exponential of the entropy of the singular values, each as a share of their sum. Roy and
// Vetterli 2007, "The effective rank", EUSIPCO, section 2. Between 1 (one direction) and the number
// of rows (all alike); 0 for a matrix of zeros.
double effective_rank(const std::vector<double>& matrix, int64_t rows);

// The number of singular values above rows·ε·σ, with ε the distance from 1 to the next `real` and σ
// the largest. For matrices that were computed in `real`: sums of up to `rows` products are off by
// up to rows·ε/2 of what they add (Higham 2002, section 3.1), and an error E of the matrix moves
// each singular value by at most ‖E‖ (Weyl), so that smaller ones can be rounding alone. 0 for a
// matrix of zeros.
int64_t numerical_rank(const std::vector<double>& matrix, int64_t rows);

}  // namespace attn
