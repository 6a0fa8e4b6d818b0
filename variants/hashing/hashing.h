// Softmax attention between positions that share a hash bucket (LSH attention): Kitaev et al. 2020,
// arXiv:2001.04451.
//   buckets.h           random rotations, and positions sorted by bucket
//   bucket_attention.h  forward, backward and cost of attention inside sorted chunks
//   bucket_decoder.h    decoding: a query against the last members of its buckets
// Time 8·rounds·n·chunk·d FLOPs, memory n·d.
// Internal: gathered_chunks.h.
#pragma once

#include "variants/hashing/bucket_attention.h"
#include "variants/hashing/bucket_decoder.h"
#include "variants/hashing/buckets.h"
