// Softmax attention to a fixed pattern of keys. The patterns only choose keys; the weights are
// those of variants/softmax/softmax.h.
//   neighbour_blocks.h   a block of queries sees its block and its neighbours (local)
//   strided_attention.h  near keys, and far ones a stride apart (sparse), arXiv:1904.10509
//   random_blocks.h      neighbours, both ends and random blocks (bigbird), arXiv:2007.14062
//   random_graph.h       random neighbours of each position (graph)
//   pattern_decoder.h    decoding from some of the cached positions
//   band_cache.h         decoding: the first positions, and a ring of the last ones
//   cached.h             a pattern made for one shape, kept for the next call
// Time 4·d FLOPs a visible pair, memory n·d.
// Internal: block_lists.h.
#pragma once

#include "variants/patterns/band_cache.h"
#include "variants/patterns/cached.h"
#include "variants/patterns/neighbour_blocks.h"
#include "variants/patterns/pattern_decoder.h"
#include "variants/patterns/random_blocks.h"
#include "variants/patterns/random_graph.h"
#include "variants/patterns/strided_attention.h"
