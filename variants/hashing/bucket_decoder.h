// Decoding by LSH attention. The state has all positions and, for each round, a link from each
// position to the previous one in its bucket. A step hashes its query and follows the links. It
// reads 2·d numbers for each visible key, of which there are at most rounds·chunk.
#pragma once

#include <cstdint>
#include <memory>

#include "variants/api/decoder.h"
#include "variants/hashing/bucket_attention.h"

namespace attn {

// rotations [heads, rounds, directions, dim] are copied. The options must be `masked` with unit
// keys. Null where query heads share keys, since keys are the queries.
std::unique_ptr<Decoder> bucket_decoder(const Shape& position, int64_t capacity,
                                        const Tensor& rotations, const BucketOptions& options);

// The state of `heads` heads, counted over all batch entries, in bytes.
int64_t bucket_state_bytes(int64_t heads, int64_t positions, int64_t dim, int64_t rounds,
                           const BucketOptions& options);

}  // namespace attn
