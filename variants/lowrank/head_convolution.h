// A convolution along the sequence with one filter a head, the same for all its channels. 2·kernel
// FLOPs a number.
#pragma once

#include <cstdint>
#include <span>

#include "core/autograd/var.h"

namespace attn {

// out[b, h, i] = Σ_t filter[h, t]·x[b, h, i - kernel/2 + t], x [batch, heads, len, dim], filter
// [heads, kernel] with an odd kernel. Rows of x outside [0, lengths[b]) (empty: all are valid)
// count as zeros and are never read; such rows of out are zeros.
Var head_convolution(const Var& x, const Var& filter, std::span<const int64_t> lengths = {});
double head_convolution_flops(int64_t len, int64_t dim, int64_t kernel);  // of a head

}  // namespace attn
