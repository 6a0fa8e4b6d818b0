// Layers over a window of neighbouring positions, with the same weights at every position, and
// convolutions as long as the sequence.
//   window_product.h    the concatenated rows of a window, times one matrix
//   window_net.h        fully connected layers on such rows: 2·n·kernel·width² FLOPs
//   window_decoder.h    decoding from the last rows
//   fft.h               Fourier transforms: 5·n·log2(n) FLOPs
//   long_convolution.h  each channel by a filter of its own, 15·n·log2(n) FLOPs a channel
//   implicit_filter.h   such filters from a small network (hyena)
//   history_decoder.h   decoding from all rows so far
// Internal: convolution_strips.h.
#pragma once

#include "variants/convolution/fft.h"
#include "variants/convolution/history_decoder.h"
#include "variants/convolution/implicit_filter.h"
#include "variants/convolution/long_convolution.h"
#include "variants/convolution/window_decoder.h"
#include "variants/convolution/window_net.h"
#include "variants/convolution/window_product.h"
