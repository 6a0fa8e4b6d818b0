// Greedy decoding of a batch: each step appends the likeliest token, until every sequence has
// ended.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/model/encoder_decoder.h"

namespace attn {

enum class DecodeBy {
  states,   // each step computes one position from EncoderDecoder::States
  prefixes  // each step computes the whole prefix again with EncoderDecoder::decode
};

// The tokens of each sequence, up to and including the end token. A sequence without an end token
// has outputs + 1 tokens. `outputs` is at most that of the model; 0 means that of the model. Ties
// go to the smallest token. Records no gradients.
std::vector<std::vector<int32_t>> greedy(const EncoderDecoder& model,
                                         const EncoderDecoder::Memory& memory, DecodeBy way,
                                         int64_t outputs = 0);

}  // namespace attn
