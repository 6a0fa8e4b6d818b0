// Layers over a window of neighbouring positions, with the same weights at every position.
//   window_product.h  the concatenated rows of a window, times one matrix
//   window_net.h      fully connected layers on such rows: 2·n·kernel·width² FLOPs
//   window_decoder.h  decoding from the last rows
#pragma once

#include "variants/convolution/window_decoder.h"
#include "variants/convolution/window_net.h"
#include "variants/convolution/window_product.h"
