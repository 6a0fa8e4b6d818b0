// A fully connected layer over a window of rows with the same weights at every position, as in 1-D
// convolution. 2·len·kernel·in·out FLOPs. The rows of a window are contiguous in memory and are
// multiplied in place; only windows that cross an end of the sequence are copied.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

struct Window {
  int64_t kernel = 1, before = 0;         // rows of a window, and rows of it before the position
  std::span<const int64_t> lengths = {};  // valid rows of each batch entry; empty: all
  bool tanh = false;                      // apply tanh to the result
};

// out[b, i] = bias + Σ_k x[b, i - before + k]·W[k], x [batch, len, in], weight [kernel, in, out]
// (or [in, out]), bias [out] or undefined -> [batch, len, out]. Rows of x outside [0, lengths[b])
// count as zeros and are never read; rows of out at or beyond lengths[b] are zeros.
Var window_product(const Var& x, const Var& weight, const Var& bias, const Window& window);

// The cost of a forward with empty `lengths`; peak bytes include the result, but not x. The state
// is that of window_decoder.h.
Cost window_product_cost(int64_t batch, int64_t len, int64_t in, int64_t out, int64_t kernel);

}  // namespace attn
