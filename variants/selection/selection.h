// Softmax attention to keys that the data choose for each query. What is chosen has no gradient.
//   top_attention.h  the keys of the largest scores: those of the logits (Gupta et al. 2021,
//                    arXiv:2106.06899) or of an indexer (DeepSeek-V3.2 2025, arXiv:2512.02556);
//                    2·n²·d FLOPs of scores, causal half, memory n·d
//   indexer.h        the lightning indexer; index_mimicry.h: the loss that it is trained by
//   key_chooser.h    its choice, one position after the other
//   top_decoder.h, shared_choice_decoder.h  decoding by either, and by an indexer of all heads
//   block_attention.h  own and chosen blocks of keys in one softmax: 4·d FLOPs a visible pair
//   block_lists.h    lists of blocks and queries, means of blocks
//   block_choice.h   the choice of blocks by mean keys (Lu et al. 2025, arXiv:2502.13189)
//   block_decoder.h  decoding by chosen blocks
//   compressed_attention.h, block_network.h, gated_branches.h, branch_decoder.h  the branches of
//                    native sparse attention (Yuan et al. 2025, arXiv:2502.11089)
//   gated_blocks.h, row_decoder.h  rows of blocks by learned softmaxes, as in compressed sparse
//                    attention (DeepSeek-V4 2026), and decoding by them
// Internal: top_problem.h, top_strip.h.
#pragma once

#include "variants/selection/block_attention.h"
#include "variants/selection/block_choice.h"
#include "variants/selection/block_decoder.h"
#include "variants/selection/block_lists.h"
#include "variants/selection/block_network.h"
#include "variants/selection/branch_decoder.h"
#include "variants/selection/compressed_attention.h"
#include "variants/selection/gated_blocks.h"
#include "variants/selection/gated_branches.h"
#include "variants/selection/index_mimicry.h"
#include "variants/selection/indexer.h"
#include "variants/selection/key_chooser.h"
#include "variants/selection/row_decoder.h"
#include "variants/selection/shared_choice_decoder.h"
#include "variants/selection/top_attention.h"
#include "variants/selection/top_decoder.h"
