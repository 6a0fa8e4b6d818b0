// Softmax attention between positions that share a hash bucket (LSH attention): Kitaev et al. 2020,
// arXiv:2001.04451.
//   buckets.h           random rotations, and positions sorted by bucket
//   bucket_attention.h  forward, backward and cost of attention inside sorted chunks
//   bucket_decoder.h    decoding: a query against the last members of its buckets
// Time 8·rounds·n·chunk·d FLOPs, memory n·d. Clusters of queries (arXiv:2007.04825):
//   hamming_clusters.h     codes of sign bits, and k-means among them
//   clustered_attention.h  attention of mean queries, 4·clusters·n·d FLOPs, and of top keys
// Clusters of positions (arXiv:2003.05997):
//   routed_attention.h     attention inside them, 4·clusters·window²·d FLOPs
//   routes.h               which positions belong to which centroid
// Collisions of sign hashes (arXiv:2111.09714):
//   sign_codes.h           codes of sign bits of many hashes
//   collision_attention.h  sums of the values of a bucket, 2·hashes·bits·d FLOPs a row; a decoder
//   collision_weights.h    their expectation, for attention in strips, 4·n²·d FLOPs
// Internal: bucket_lists.h, gathered_chunks.h, row_sums.h, top_keys.h.
#pragma once

#include "variants/hashing/bucket_attention.h"
#include "variants/hashing/bucket_decoder.h"
#include "variants/hashing/buckets.h"
#include "variants/hashing/clustered_attention.h"
#include "variants/hashing/collision_attention.h"
#include "variants/hashing/collision_weights.h"
#include "variants/hashing/hamming_clusters.h"
#include "variants/hashing/routed_attention.h"
#include "variants/hashing/routes.h"
#include "variants/hashing/sign_codes.h"
