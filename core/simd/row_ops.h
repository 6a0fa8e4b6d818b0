// Elementwise kernels and sums over rows, on the instruction set that isa.h selects. The order of a
// sum depends only on the length of the row and on the instruction set. A call has an overhead of
// about 3 ns.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

real sum_in_row(const real* x, int64_t n);
real row_dot(const real* x, const real* y, int64_t n);
real max_in_row(const real* x, int64_t n);  // -infinity for an empty row; NaN is ignored

// dots[i] = x[i]·y[i] for rows x_row and y_row apart.
void dots_of_rows(int64_t rows, int64_t cols, const real* x, int64_t x_row, const real* y,
                  int64_t y_row, real* dots);

// to[j] += Σ_i from[i, j]. Rows are `stride` apart; 0 stands for n.
void add_column_sums(real* to, const real* from, int64_t rows, int64_t n, int64_t stride = 0);

// to = e^(factor·x - shift); returns the sum of `to`, which may be x. About 1.5 ulp; NaN stays.
real exp_row(int64_t n, const real* x, real factor, real shift, real* to);
real log_sum_row(int64_t n, const real* x);  // log Σ e^x; -infinity for an empty row
// `to` may be x. Absolute error below 2 units in the last place of 1.
void sigmoid_row(int64_t n, const real* x, real* to);
// Error of a few units in the last place of the result, for small x too: tanh(x) is x there.
void tanh_row(int64_t n, const real* x, real* to);
// to = factor·log(1 + e^(sign·x)). Error below 4 units in the last place.
void softplus_row(int64_t n, const real* x, real sign, real factor, real* to);
void elu_row(int64_t n, const real* x, real* to);  // x for x > 0, else e^x - 1

// y = softmax(x) for each row; a row of -infinity alone gives zeros.
void softmax_rows(int64_t rows, int64_t n, const real* x, real* y);
void softmax_rows_backward(int64_t rows, int64_t n, const real* y, const real* g, real* dx);

struct RowBlock {  // rows that are `row` numbers apart
  real* data = nullptr;
  int64_t row = 0;
};
// to = gelu(from + bias); a null bias is 0. If derivative.data is not null, it is multiplied by the
// derivative, or overwritten with it if `set`. gelu(x) = x·Φ(x) (Hendrycks and Gimpel 2016,
// arXiv:1606.08415, exact form): about 40 operations. Error of the value: (4 + x²) units in its
// last place, also in the negative tail while e^(-x²/2) is a normal number (0 beyond); and 2 units
// in the last place of max(1, |x|).
void gelu_rows(int64_t rows, int64_t cols, RowBlock from, const real* bias, RowBlock to,
               RowBlock derivative = {}, bool set = false);

// Layer normalisation of each row of n numbers; Ba et al. 2016, arXiv:1607.06450. If `stats` is not
// null, it receives the mean and 1/deviation of each row.
void layer_norm_rows(int64_t rows, int64_t n, const real* x, const real* gain, const real* bias,
                     real epsilon, real* y, real* stats);
// Writes dx, or adds to it if `add`; a null dx is skipped. Adds the sums of g·x̂ and g over the
// rows to dgain and dbias.
void layer_norm_rows_backward(int64_t rows, int64_t n, const real* x, const real* stats,
                              const real* g, const real* gain, real* dx, bool add, real* dgain,
                              real* dbias);

// The factors of one AdamW step t, in the notation of Kingma and Ba 2015, arXiv:1412.6980, section
// 2, and Loshchilov and Hutter 2019, arXiv:1711.05101, algorithm 2.
struct AdamWStep {
  real beta1, beta2;
  real grad_factor;         // (1 - β1)·clip: clip scales the gradient
  real grad_square_factor;  // (1 - β2)·clip²
  real step_size;           // α_t = α·√(1 - β2^t) / (1 - β1^t)
  real epsilon;             // ε·√(1 - β2^t)
  real decay_factor;        // 1 - α·λ, of decoupled weight decay
};
// One step on n numbers; `first` and `second` are the moment estimates. Sets the gradient to 0.
void adamw_row(int64_t n, const AdamWStep& step, real* value, real* gradient, real* first,
               real* second);

}  // namespace attn
