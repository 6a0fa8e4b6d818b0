// Attention weights that do not compare positions: Tay et al. 2021, arXiv:2005.00743.
//   synthetic_attention.h  softmax of given logits, times the values: 2·n²·d FLOPs, memory n·d
//   synthetic_kinds.h      where the logits come from: dense, random, factorised
//   synthetic_decoder.h    decoding from a cache of values
//   fourier_mixing.h       the weights are cosines: a Fourier transform, 2.5·n·d·log2(n·d) FLOPs
//   position_mixture.h     a learned matrix times the positions
//   spatial_gate.h         gMLP: a learned mixture of positions gates the channels
//   aft_attention.h        AFT: weights e^(key + learned bias) in each channel
// Internal: exponential_sums.h, exponential_tiles.h, aft_gradient.h.
#pragma once

#include "variants/synthetic/aft_attention.h"
#include "variants/synthetic/fourier_mixing.h"
#include "variants/synthetic/position_mixture.h"
#include "variants/synthetic/spatial_gate.h"
#include "variants/synthetic/synthetic_attention.h"
#include "variants/synthetic/synthetic_decoder.h"
#include "variants/synthetic/synthetic_kinds.h"
