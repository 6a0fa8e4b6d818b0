// Quest (arXiv:2406.10774): all positions are kept, in pages of kQuestPage. For each query head a
// step reads its own page and those whose bound Σ_c max(q_c·least_c, q_c·most_c) of the logits is
// highest, budget / kQuestPage pages in all. 4·d FLOPs a page, and 4·d a position that is read.
#pragma once

#include <memory>

#include "variants/softmax/eviction.h"

namespace attn {

std::unique_ptr<Decoder> quest_decoder(const Shape& position, int64_t capacity,
                                       const Eviction& eviction);
int64_t quest_state_bytes(int64_t heads, int64_t positions, int64_t dim);

}  // namespace attn
