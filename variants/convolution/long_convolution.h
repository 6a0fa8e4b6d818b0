// A convolution of each channel with a filter as long as the sequence. Sums of products up to 256
// positions, n² multiply-adds a channel; beyond, Fourier transforms, 15·n·log2(n) FLOPs a channel.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/autograd/var.h"
#include "core/base/params.h"
#include "variants/api/cost.h"

namespace attn {

enum class ConvolutionForm {
  automatic,  // direct up to 256 positions
  direct,     // one sum after the other
  fft,
};
ParamSpec convolution_form();  // the parameter `form` of variants
std::string convolution_form_note();
ConvolutionForm form_of(const Params& params);
// Whether lengths of up to 256 positions are transformed too: form=fft.
bool uses_fourier(const Params& params);

struct LongConvolution {
  bool causal = false;
  std::span<const int64_t> lengths = {};  // valid rows of each batch entry; empty: all
  ConvolutionForm form = ConvolutionForm::automatic;
};

// out[b, h, i] = Σ_j filter[i - j]·x[b, h, j] + skip·x[b, h, i] for each channel; x [batch, heads,
// len, dim]; skip [heads·dim] or undefined. filter [taps, heads·dim]: causal, row t is of distance
// t, taps >= len; else the middle row is of distance 0, and row middle + t of distance t, taps >=
// 2·len - 1 and odd. Rows of x at or beyond lengths[b] count as zeros and are never read; such rows
// of out are zeros.
Var long_convolution(const Var& x, const Var& filter, const Var& skip, const LongConvolution& how);

// Of a forward with empty `lengths`; peak bytes are the result and the workspace. The state is that
// of history_decoder.h.
Cost long_convolution_cost(const AttentionShape& shape, const LongConvolution& how);

}  // namespace attn
