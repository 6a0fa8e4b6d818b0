// One fully connected layer over a window of rows, the same at every position: what 1-D convolution
// and window networks stand on. 2·len·kernel·in·out FLOPs. The rows of a window lie side by side in
// memory, so that they are multiplied where they are; only what reaches over an end is copied.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"
#include "variants/api/cost.h"

namespace attn {

struct Window {
  int64_t kernel = 1, before = 0;  // rows of a window; of them, those before the position's own
  std::span<const int64_t> lengths = {};  // valid rows of each batch entry; empty: all
  bool tanh = false;                      // of the result
};

// out[b, i] = bias + Σ_k x[b, i - before + k]·W[k], x [batch, len, in], weight [kernel, in, out]
// (or [in, out]), bias [out] or undefined -> [batch, len, out]. Rows of x outside [0, lengths[b])
// count as zeros and are never read; rows of out at or beyond lengths[b] are zeros.
Var window_product(const Var& x, const Var& weight, const Var& bias, const Window& window);

// Of a forward with lengths empty; peak bytes with the result, without x; the state of
// window_decoder.h.
Cost window_product_cost(int64_t batch, int64_t len, int64_t in, int64_t out, int64_t kernel);

}  // namespace attn
