// LSH attention: softmax over the union of the keys that share a bucket with the query in some
// round of hashing. Positions are sorted by bucket and divided into chunks; a query sees its own
// chunk and the one before. Kitaev et al. 2020, arXiv:2001.04451, section 2 and appendix A.
// rounds·8·n·chunk·d FLOPs.
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
  // true: a query sees only keys of its own bucket; each key counts once, even if several rounds
  // show it; the query sees itself only if there is no other key; causal, it sees the last `chunk`
  // earlier keys of the bucket. false: it sees all keys of both chunks in every round, and the
  // chunk before the first one is the last one.
  bool masked = true;
  int64_t chunks = 1;     // if not masked: chunks of each sequence, instead of `chunk`
  bool unit_keys = true;  // keys are the queries, normalised to length one if true
  double scale = 1;       // of the logits

  int64_t chunk_of(int64_t length) const { return masked ? chunk : (length + chunks - 1) / chunks; }
};

// q and v [batch, heads, len, dim]; k has the same shape and is not read; its gradient is zero.
// rotations [heads, rounds, directions, dim].
Var bucket_attention(const Var& q, const Var& k, const Var& v, const Tensor& rotations,
                     const BucketOptions& options, const Mask& mask);

Cost bucket_cost(const AttentionShape& shape, int64_t rounds, const BucketOptions& options);

}  // namespace attn
