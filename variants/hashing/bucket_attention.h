// Attention inside buckets: softmax over the union of the keys that some round of hashing shows a
// query. Positions sorted by bucket are cut into chunks; a chunk sees itself and the one before.
// Kitaev et al. 2020, arXiv:2001.04451, section 2 and appendix A. rounds·8·n·chunk·d FLOPs.
#pragma once

#include <cstdint>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/mask.h"
#include "variants/hashing/buckets.h"

namespace attn {

struct BucketOptions {
  int64_t chunk = 64;  // positions
  HashShape hash = {};
  bool one_bucket = false;
  // Keys of the query's own bucket alone, itself only where there is no other, and each counted
  // once however many rounds show it; causal, the last `chunk` earlier ones of the bucket. false:
  // all of both chunks, of every round, the first chunk beside the last.
  bool strict = true;
  int64_t chunks = 1;     // not strict: of each sequence, instead of `chunk` positions each
  bool unit_keys = true;  // keys are queries of length one; false: the queries themselves
  double scale = 1;       // of the logits

  int64_t chunk_of(int64_t length) const { return strict ? chunk : (length + chunks - 1) / chunks; }
};

// q and v [batch, heads, len, dim]; k [the same] is not read: its gradient is zero. rotations
// [heads, rounds, directions, dim].
Var bucket_attention(const Var& q, const Var& k, const Var& v, const Tensor& rotations,
                     const BucketOptions& options, const Mask& mask);

Cost bucket_cost(const AttentionShape& shape, int64_t rounds, const BucketOptions& options);

}  // namespace attn
