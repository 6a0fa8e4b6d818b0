// Layers over a window of neighbouring positions, the same at every position.
//   window_product.h  rows of a window side by side, times one matrix
//   window_net.h      fully connected layers on such rows: 2·n·kernel·width² FLOPs
//   window_decoder.h  decoding from the last rows
#pragma once

#include "variants/convolution/window_decoder.h"
#include "variants/convolution/window_net.h"
#include "variants/convolution/window_product.h"
