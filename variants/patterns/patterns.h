// Softmax attention to a fixed pattern of keys. The patterns select keys;
// variants/softmax/softmax.h computes the weights.
//   neighbour_blocks.h   a block of queries sees its block and its neighbours (local)
//   strided_attention.h  near keys, and distant ones a stride apart (sparse), arXiv:1904.10509
//   dilated_attention.h  long segments with gaps (dilated), arXiv:2307.02486
//   hierarchical_attention.h  means of far positions (hierarchical), arXiv:2107.11906
//   random_blocks.h      neighbours, both ends and random blocks (bigbird), arXiv:2007.14062
//   random_graph.h       random neighbours of each position (graph)
//   pattern_decoder.h    decoding from a cache of some positions
//   cached.h             a cache of the pattern of one shape
// Time 4·d FLOPs a visible pair, memory n·d.
// Internal: block_lists.h, hierarchical_joins.h, hierarchical_levels.h, position_means.h.
#pragma once

#include "variants/patterns/cached.h"
#include "variants/patterns/dilated_attention.h"
#include "variants/patterns/hierarchical_attention.h"
#include "variants/patterns/neighbour_blocks.h"
#include "variants/patterns/pattern_decoder.h"
#include "variants/patterns/random_blocks.h"
#include "variants/patterns/random_graph.h"
#include "variants/patterns/strided_attention.h"
