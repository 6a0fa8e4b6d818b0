// Attention over all visible pairs with other scores than softmax(q·k/√d).
//   additive_attention.h  softmax(w·tanh(W_q·q + W_k·k)), Bahdanau et al. 2015, arXiv:1409.0473
//   relu_attention.h      relu(q·k/√d) divided by the number of visible keys, arXiv:2309.08586
// Time n² times the cost of a score; memory n·d.
//   gated_unit.h          what a gated attention unit reads of a row, and its decoder
//   mega_unit.h           the same with moving averages, arXiv:2209.10655
// Internal: unit_cache.h, prefix_plane.h, additive_scores.h, additive_gradient.h.
#pragma once

#include "variants/scores/additive_attention.h"
#include "variants/scores/gated_unit.h"
#include "variants/scores/mega_unit.h"
#include "variants/scores/relu_attention.h"
