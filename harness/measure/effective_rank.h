// The effective rank of a matrix: the exponential of the entropy of its singular values, each as a
// share of their sum. Roy and Vetterli 2007, "The effective rank", EUSIPCO, section 2. Between 1
// (one direction) and the number of rows (all alike).
#pragma once

#include <cstdint>
#include <vector>

namespace attn {

// `matrix` [rows, rows], row by row. 0 for a matrix of zeros. Time O(rows³).
double effective_rank(const std::vector<double>& matrix, int64_t rows);

}  // namespace attn
