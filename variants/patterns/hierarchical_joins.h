// The joins of hierarchical attention's levels, from the coarsest to the finest, so that each level
// is read once: 2·n·d operations rather than n·d a level. And their backward, the other way.
// Internal to hierarchical_*.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace attn {

// Adds `shift` to log-sum-exps; infinity, of rows that saw nothing, stays.
void shift_log_sums(const Tensor& log_sum, real shift);

// out [batch, heads, m, dim] and log_sum [batch, heads, m] join those of the coarser level, each of
// whose cells stands for two.
void join_coarser(const Tensor& coarse_out, const Tensor& coarse_log_sum, const Tensor& out,
                  const Tensor& log_sum);

// Sums over the rows of each cell, weighted by exp2(least - the row's log-sum-exp), which is at
// most 1.
struct RowShares {
  Tensor grad;   // [batch, heads, m, dim]: of gradients of outputs
  Tensor dots;   // [batch, heads, m]: of their products with outputs
  Tensor least;  // [batch, heads, m]: the smallest log-sum-exp; infinity: of rows that saw nothing

  // Each row a cell.
  static RowShares of_rows(const Tensor& grad, const Tensor& out, const Tensor& log_sum);
  RowShares coarser() const;  // [batch, heads, (m + 1) / 2, ...]
  // The gradients of the outputs and log-sum-exps of a level of these cells. With s = exp2(L_cell +
  // shift - L_row), a joined output has the term s·out_cell, and ds = s·dL_cell, less what all
  // terms lose.
  void take(const Tensor& out, const Tensor& log_sum, real shift, const Tensor& of_out,
            const Tensor& of_sum) const;
};

}  // namespace attn
