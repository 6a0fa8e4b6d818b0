// Linear attention with decay, and the delta rule: a state S of key_dim·dim numbers for each head
// that every step decays, writes to and reads. Computed in chunks of positions as matrix products
// (Yang et al. 2024, arXiv:2312.06635, section 4; Yang et al. 2024, arXiv:2406.06484, section 3).
//   chunked_attention.h  forward, backward and cost; about 4·n·m·d FLOPs, the delta rule 6,
//                        a removal 8, and n·tile·(m + d) inside tiles; memory n·d + m·d
//   state_decoder.h      one step, and decoding
//   head_decoder.h       a decoder whose heads each advance a state of their own
//   decay_gate.h         decays that a gate gives, as of Mamba-2, by the rules of log_decay.h
//   key_rows.h           rows of length 1, and the keys of RWKV-7
//   level_attention.h    states of 1, 2, 4, … positions; level_decoder.h is its decoding
//   test_time_training.h a state that is trained by mini-batches, and its decoding
//   mesa_solver.h        the linear system of each position; mesa_decoder.h is its decoding
// Internal: chunked_problem.h, tile_decay.h, chunked_tile.h, tile_gradient.h,
// rotation.h, level_tile.h, test_time_batch.h.
#pragma once

#include "variants/chunked/chunked_attention.h"
#include "variants/chunked/decay_gate.h"
#include "variants/chunked/head_decoder.h"
#include "variants/chunked/state_decoder.h"
