// Elementwise kernels of tiled softmax attention. Logits are in units of log2: 2^x is cheaper than
// e^x, and the scaling of the queries includes the factor log2(e). Milakov and Gimelshein 2018
// (arXiv:1805.02867), algorithm 3. About 12 operations an element.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

inline constexpr int64_t kRowMultiple = 16;  // the widest vector of any instruction set

// One step of online softmax on `rows` rows of x with `cols` logits each (a multiple of
// kRowMultiple); rows are `stride` apart. row_max[i] is raised to the maximum of row i. x is
// replaced by the weights 2^(x - row_max). rescale[i] is set to 2^(old row_max - new row_max), the
// factor of earlier sums over this row, 0 as long as all pairs were masked. row_sum[i] is
// multiplied by rescale[i], and the weights are added. The weight of -infinity, a masked pair, is
// exactly 0, also where a whole row is masked. NaN stays.
void online_softmax_rows(int64_t rows, int64_t cols, real* x, int64_t stride, real* row_max,
                         real* row_sum, real* rescale);

// Replaces the n > 0 natural logits of a complete row by e^(x - their maximum); returns the sum.
// NaN stays, and makes the sum NaN.
real exp_from_max_row(int64_t n, real* x);

// Replaces the logits x by the weights 2^(x - log_sum[i]), and `grads`, the gradients of the
// weights, by the gradients of the natural logits times `scale`: scale·x·(grads - dots[i]). The
// weight of a masked pair is 0.
void logit_grad_rows(int64_t rows, int64_t cols, real* x, real* grads, int64_t stride,
                     const real* log_sum, const real* dots, real scale);

// The same without gradients.
void weight_rows(int64_t rows, int64_t cols, real* x, int64_t stride, const real* log_sum);

}  // namespace attn
