// Exact softmax attention in double, row by row, by its definition, and what the rows of a variant
// add to the figures of fidelity. Costs O(batch·heads·length²·head_dim).
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "harness/measure/fidelity.h"

namespace attn {

// What rows add to the figures.
struct RowTotals {
  double error = 0, norm = 0;  // of outputs against exact attention, squared
  double cosine = 0;
  // Of the implied weights. `unexplained`: the square of what the output has beyond the values so
  // weighted, `answered`: that of the output.
  double divergence = 0, kept = 0, read = 0, unexplained = 0, answered = 0;
  double rows = 0;

  RowTotals& operator+=(const RowTotals& more);
};

// Of the sequence of `row`, counted over batch, heads and queries.
int64_t valid_length(const FidelityInputs& in, int64_t row);

// Exact weights of query `row` on its visible keys.
void exact_weights(const FidelityInputs& in, int64_t row, bool causal,
                   std::vector<double>& weights);

// `out` [batch, heads, length, head_dim] against exact attention, and `implied`, the weights of the
// variant [batch, heads, length, length]; undefined: they are unknown.
RowTotals compare_rows(const FidelityInputs& in, const Tensor& out, const Tensor& implied,
                       bool causal);

}  // namespace attn
