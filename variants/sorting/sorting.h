// Sinkhorn attention: softmax attention to the keys of a block and to those that a learned sorting
// matrix assigns to it. Tay et al. 2020, arXiv:2002.11296.
//   block_sorting.h  block sums, Sinkhorn normalisation, sorted blocks, attention to both. Time
//                    4·n·2·block·d + 4·n²/block·d FLOPs, memory n·d
#pragma once

#include "variants/sorting/block_sorting.h"
