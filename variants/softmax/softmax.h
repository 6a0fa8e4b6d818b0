// Exact softmax attention: softmax(q·kᵀ/√d)·v over the keys that a band or a block pattern shows.
// Online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867) in tiles, as in FlashAttention
// (Dao et al. 2022, arXiv:2205.14135): no n×n buffer, and the backward computes the weights again.
//   band.h               which keys a query sees, and how queries are cut into tiles
//   softmax_attention.h  forward, backward and cost: 4·d FLOPs a visible pair, memory n·d
//   softmax_tiles.h      one tile of queries against one run of keys
//   softmax_merge.h      row maximum, row sum and rescaling: parts of one softmax, joined
//   softmax_decoder.h    decoding from a cache of keys and values
//   grouped_attention.h  attention within equal groups of positions
//   edge_attention.h     attention along a list of edges
//   panel_cache.h        a cache of keys and values for any score
//   regroup.h            positions reordered into groups, and back
// Internal: softmax_forward.h.
#pragma once

#include "variants/softmax/band.h"
#include "variants/softmax/edge_attention.h"
#include "variants/softmax/grouped_attention.h"
#include "variants/softmax/panel_cache.h"
#include "variants/softmax/regroup.h"
#include "variants/softmax/softmax_attention.h"
#include "variants/softmax/softmax_decoder.h"
#include "variants/softmax/softmax_merge.h"
#include "variants/softmax/softmax_tiles.h"
