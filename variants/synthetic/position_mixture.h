// A learned matrix times the positions of each sequence: 2·n²·cols FLOPs, causal about half; memory
// n·cols.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"

namespace attn {

// out[b, i] = Σ_j matrix[i, j]·rows[b, j], causal over j <= i; rows [batch, len, cols], matrix
// [longest, longest], longest >= len.
Var position_mixture(const Var& matrix, const Var& rows, bool causal);

// Multiply-adds for each column and batch entry: pairs of whole tiles.
double mixed_pairs(int64_t len, bool causal);

}  // namespace attn
