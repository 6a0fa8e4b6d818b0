// The elementwise and summing parts of ops and kernels, a row or many rows a call, on the
// instruction set that isa.h names. A sum's order depends on the row's length and the instruction
// set alone. A call costs about 3 ns beside its work.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

real sum_in_row(const real* x, int64_t n);
real row_dot(const real* x, const real* y, int64_t n);
real max_in_row(const real* x, int64_t n);  // -infinity for an empty row; NaN is passed over

// dots[i] = x[i]·y[i] for rows x_row and y_row apart.
void dots_of_rows(int64_t rows, int64_t cols, const real* x, int64_t x_row, const real* y,
                  int64_t y_row, real* dots);

// to[j] += sum of from[i, j] over the rows i, which are n apart, or `stride`
void add_column_sums(real* to, const real* from, int64_t rows, int64_t n, int64_t stride = 0);

// to = e^(factor·x - top), which may be x; returns the sum. Near 1.5 ulp; NaN stays.
real exp_row(int64_t n, const real* x, real factor, real top, real* to);
real log_sum_row(int64_t n, const real* x);  // log Σ e^x; -infinity where there are none
// to may be x. Absolute error below 2 units in the last place of 1.
void sigmoid_row(int64_t n, const real* x, real* to);
void tanh_row(int64_t n, const real* x, real* to);
void elu_row(int64_t n, const real* x, real* to);  // elu: x above 0, e^x - 1 below

// y = softmax(x) of each row; zeros where all is -infinity.
void softmax_rows(int64_t rows, int64_t n, const real* x, real* y);
void softmax_rows_back(int64_t rows, int64_t n, const real* y, const real* g, real* dx);

struct RowBlock {  // rows of numbers that lie `row` apart
  real* data = nullptr;
  int64_t row = 0;
};
// GELU, x·Φ(x) (Hendrycks and Gimpel 2016, arXiv:1606.08415, exact form): about 40 operations.
// Error: (4 + x²) units in the last place of the value itself, so in the far negative tail too, as
// far as e^(-x²/2) is normal (0 beyond); 2 of max(1, |x|).
// to = gelu(from + bias), bias null: 0. slope.data, unless null, is multiplied by the derivative
// there, or, where `set`, becomes it.
void gelu_rows(int64_t rows, int64_t cols, RowBlock from, const real* bias, RowBlock to,
               RowBlock slope = {}, bool set = false);

// Layer normalisation (Ba et al. 2016, arXiv:1607.06450) of rows of n numbers; stats, unless null,
// gets mean and 1/deviation of each.
void layer_norm_rows(int64_t rows, int64_t n, const real* x, const real* gain, const real* bias,
                     real epsilon, real* y, real* stats);
// dx (unless null; `add`: to what is there), and the sums of g·x̂ and g over the rows, added.
void layer_norm_rows_back(int64_t rows, int64_t n, const real* x, const real* stats, const real* g,
                          const real* gain, real* dx, bool add, real* dgain, real* dbias);

// A step of AdamW on n numbers: see optimizer.cc. The gradient is cleared.
struct AdamStep {
  real beta1, beta2, gain1, gain2, rate, floor, kept;
};
void adam_row(int64_t n, const AdamStep& step, real* value, real* gradient, real* first,
              real* second);

}  // namespace attn
