// Softmax attention to a block's own keys and to the block that a learned matrix sorts to its
// place: Tay et al. 2020, arXiv:2002.11296.
//   block_sorting.h  block sums, Sinkhorn normalisation, sorted blocks, attention to both. Time
//                    4·n·2·block·d + 4·n²/block·d FLOPs, memory n·d
#pragma once

#include "variants/sorting/block_sorting.h"
