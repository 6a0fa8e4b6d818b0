// Decoding by attention inside buckets: all positions are kept, and for each round a link from each
// of them to the one before it in its bucket. A step hashes its query and follows the links: it
// reads 2·d numbers for each key seen, at most rounds·chunk.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"
#include "variants/hashing/bucket_attention.h"

namespace attn {

// rotations [heads, rounds, directions, dim], as they are now; of the options, the strict ones.
// null where query heads share keys: these are the queries.
std::unique_ptr<Decoder> bucket_decoder(const Shape& position, int64_t capacity,
                                        const Tensor& rotations, const BucketOptions& options);

// What that holds of `heads` heads of all batch entries.
int64_t bucket_state_bytes(int64_t heads, int64_t positions, int64_t dim, int64_t rounds,
                           const BucketOptions& options);

}  // namespace attn
