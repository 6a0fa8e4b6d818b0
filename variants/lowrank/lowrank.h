// Keys and values that stand for many positions each: softmax attention to fewer rows than the
// sequence has. variants/softmax/softmax.h computes the attention.
//   sequence_projection.h  a learned map from n rows to `rank` rows, 2·n·rank·d FLOPs (linformer)
//   block_compression.h    a convolution from each block of rows to one row, 2·n·d² FLOPs
//   compressed_memory.h    attention to blocks that have ended, and its decoder
//   landmarks.h            means of segments and pseudo-inverses, 48·m³ FLOPs (nystrom)
//   head_convolution.h     one short filter a head, 2·n·kernel·d FLOPs
//   latents.h              learned rows that read the sequence and are read (luna, latent)
//   luna_layer.h           learned rows whose packed rows are the next layer's (luna[block=paper])
//   causal_packing.h       running means packed by learned rows, and its decoder (causal luna)
//   set_block.h            attention between sets with its own projections (induced)
//   shared_latent.h        one latent a position for all heads, and the absorbed decode (mla)
//   truncated_weights.h    the best weights of a rank, 22·n³ FLOPs (oracle_rank)
#pragma once

#include "variants/lowrank/compressed_memory.h"
#include "variants/lowrank/block_compression.h"
#include "variants/lowrank/causal_packing.h"
#include "variants/lowrank/head_convolution.h"
#include "variants/lowrank/landmarks.h"
#include "variants/lowrank/latents.h"
#include "variants/lowrank/luna_layer.h"
#include "variants/lowrank/sequence_projection.h"
#include "variants/lowrank/set_block.h"
#include "variants/lowrank/shared_latent.h"
#include "variants/lowrank/truncated_weights.h"
