// Exact softmax attention: softmax(q·kᵀ/√d)·v over the keys that a band or a block pattern selects.
// Online softmax (Milakov and Gimelshein 2018, arXiv:1805.02867) in tiles, as in FlashAttention
// (Dao et al. 2022, arXiv:2205.14135): no n×n buffer; the backward recomputes the weights.
//   band.h                    the visible keys of a query, and the tiles of queries
//   softmax_attention.h       the op: 4·d FLOPs a visible pair, memory n·d
//   softmax_log_sum.h         the same with the log-sum-exp of each row
//   biased_attention.h        with a bias of each pair: forget gates, or a table over distances
//   softmax_op.h              the same for a problem that is stated by its sizes and masks
//   softmax_cost.h            its cost
//   softmax_forward.h         its forward pass, without gradients
//   forward_sizes.h           how the forward pass divides its work
//   softmax_backward.h        its backward pass
//   softmax_tiles.h           the problem, and operations on tiles
//   softmax_merge.h           row maximum, row sum and rescaling of partial results
//   join.h                    two partial results of whole arrays, joined by log-sum-exp
//   softmax_decoder.h         decoding from a cache of keys and values
//   eviction.h                decoding from a cache that keeps some of them
//   materialized_attention.h  the textbook form, with the n×n matrix of weights
//   grouped_attention.h       attention within groups of positions; grouped_backward.h
//   edge_attention.h          attention along a list of edges
//   panel_cache.h             a cache of keys and values for any score
//   regroup.h                 reordering of positions into groups, and back
// Internal: backward_layout.h, forward_layout.h, forward_storage.h, decode_bias.h, decode_cache.h,
// logit_bias.h, paired_cache.h, cache_parts.h, typed_cache.h, held_positions.h,
// evicting_decoder.h, quest_decoder.h.
#pragma once

#include "variants/softmax/band.h"
#include "variants/softmax/biased_attention.h"
#include "variants/softmax/edge_attention.h"
#include "variants/softmax/eviction.h"
#include "variants/softmax/forward_sizes.h"
#include "variants/softmax/grouped_attention.h"
#include "variants/softmax/grouped_backward.h"
#include "variants/softmax/join.h"
#include "variants/softmax/materialized_attention.h"
#include "variants/softmax/panel_cache.h"
#include "variants/softmax/regroup.h"
#include "variants/softmax/softmax_attention.h"
#include "variants/softmax/softmax_backward.h"
#include "variants/softmax/softmax_cost.h"
#include "variants/softmax/softmax_decoder.h"
#include "variants/softmax/softmax_forward.h"
#include "variants/softmax/softmax_log_sum.h"
#include "variants/softmax/softmax_merge.h"
#include "variants/softmax/softmax_op.h"
#include "variants/softmax/softmax_tiles.h"
