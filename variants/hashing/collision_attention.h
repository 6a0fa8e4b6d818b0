// Attention by collisions of sign hashes: each hash sums the values of the keys of a bucket, and a
// query reads its own bucket; the mean over hashes. Zeng et al. 2021, arXiv:2111.09714.
// 2·hashes·bits·d FLOPs a row and 2·hashes·d additions a position; memory n·d.
#pragma once

#include <cstdint>
#include <memory>

#include "core/autograd/var.h"
#include "variants/api/cost.h"
#include "variants/api/decoder.h"
#include "variants/api/mask.h"

namespace attn {

struct CollisionOptions {
  int64_t bits = 10;   // of a hash
  double longest = 0;  // SignHashes::longest_of(planes)
};

// out_i = Σ_j w_ij·v_j over the visible keys, where w_ij is the share of the hashes in which q_i
// and k_j have the same code. planes [heads, hashes·bits, dim]. q and k are hashed alone. Gradients
// of unit rows are a surrogate's, with bits/2·w_ij for the derivative of w_ij with respect to their
// product; nothing else reads them.
Var collision_attention(const Tensor& q, const Tensor& k, const Var& unit_q, const Var& unit_k,
                        const Var& v, const Tensor& planes, const CollisionOptions& options,
                        const Mask& mask);

// One forward without gradients, and a copy of the output with rows over their size.
Cost collision_cost(const AttentionShape& shape, int64_t hashes, int64_t bits);

// A table of 2^bits sums of values for each hash. A step hashes a key and a query, and reads and
// writes one row of each table: nothing grows with the length. Null where heads share keys, since
// each has planes of its own.
std::unique_ptr<Decoder> collision_decoder(const Shape& position, int64_t capacity,
                                           const Tensor& planes, const CollisionOptions& options);

}  // namespace attn
