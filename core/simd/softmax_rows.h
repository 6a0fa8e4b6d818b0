// The elementwise part of tiled softmax attention, forward and backward, on rows of logits in
// units of log2: 2^x is cheaper than e^x, and the factor log2(e) is free where queries are scaled.
// Milakov and Gimelshein 2018 (arXiv:1805.02867), algorithm 3. About 12 operations an element.
#pragma once

#include <cstdint>

#include "core/base/real.h"

namespace attn {

inline constexpr int64_t kRowMultiple = 16;  // the widest vector of any instruction set

// One step of online softmax on `rows` rows of x, `stride` apart, of `cols` logits each (a multiple
// of kRowMultiple). row_max[i], the largest logit so far, rises to that of the row. x becomes
// 2^(x - row_max). rescale[i] becomes 2^(old row_max - new row_max), the factor of earlier sums
// over this row. row_sum[i] is multiplied by rescale[i] and grows by the row's weights. -infinity
// is a hidden pair: its weight is exactly 0, also where a whole row is hidden. NaN stays.
void online_softmax_rows(int64_t rows, int64_t cols, real* x, int64_t stride, real* row_max,
                         real* row_sum, real* rescale);

// x, logits, becomes the weights 2^(x - log_sum[i]); slopes, gradients of the weights, become those
// of natural logits times `scale`: scale·x·(slopes - dots[i]). Hidden pairs give 0 in x.
void slope_rows(int64_t rows, int64_t cols, real* x, real* slopes, int64_t stride,
                const real* log_sum, const real* dots, real scale);

// The same without slopes.
void weight_rows(int64_t rows, int64_t cols, real* x, int64_t stride, const real* log_sum);

}  // namespace attn
