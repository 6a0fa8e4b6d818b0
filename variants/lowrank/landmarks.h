// Landmarks of a sequence: the means of its segments; and the pseudo-inverse of the weights between
// them. Xiong et al. 2021, arXiv:2102.03902, eqs. 10 to 12.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

// x [batch, heads, len, dim] -> [batch, heads, count, dim]. The valid rows of entry b are cut into
// min(count, lengths[b]) segments whose sizes differ by one at most; row s is the mean of segment
// s, and further rows are zeros. Rows at or beyond lengths[b] (empty: all are valid) are not read.
Var segment_means(const Var& x, int64_t count, std::span<const int64_t> lengths = {});

// softmax(of_q·of_kᵀ/√dim) [batch, heads, m, m]; rows and columns at or beyond used[b] (empty: all
// are used) are zeros. 2·m²·dim FLOPs.
Var landmark_weights(const Var& of_q, const Var& of_k, std::span<const int64_t> used = {});

// Z after `steps` iterations Z·(13 - AZ(15 - AZ(7 - AZ)))/4 from Aᵀ/‖A‖₁, for each matrix of
// weights [batch, heads, m, m]. Its rows must sum to one, or be zeros: where row and column s are
// zeros, those of Z are too. 8·m³ FLOPs a step. A matrix of zeros gives zeros.
Var iterated_inverse(const Var& weights, int64_t steps);
int64_t iterated_inverse_bytes(int64_t matrices, int64_t m);  // the workspace of a forward
double iterated_inverse_flops(int64_t m, int64_t steps);      // of a matrix
double iterated_inverse_backward_flops(int64_t m, int64_t steps);

// A⁺·values with the pseudo-inverse of A in double, without iterations: values [batch, heads, m,
// dim]. Only the first min(m, lengths[b]) rows and columns of A are read, and further rows of the
// result are zeros. The gradient is that of the inverse of a regular matrix.
Var exact_inverse_product(const Var& weights, const Var& values,
                          std::span<const int64_t> lengths = {});
double exact_inverse_flops(int64_t m, int64_t dim);  // of a matrix

// Of attention through landmarks, with `steps` iterations (0: the exact inverse) and a convolution
// of `kernel` positions (0: none).
Cost landmark_cost(const AttentionShape& shape, int64_t landmarks, int64_t steps, int64_t kernel);

}  // namespace attn
