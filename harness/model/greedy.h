// Greedy decoding of a batch: the likeliest token, again and again, until each sequence has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/model/encoder_decoder.h"

namespace attn {

enum class DecodeBy {
  states,   // one position a step, from EncoderDecoder::States
  prefixes  // every step computes the whole prefix again, by the forward of training
};

// Of each sequence the tokens chosen: up to and including the end, or outputs + 1 of them where it
// does not end; `outputs` at most, and where 0, the model's. Ties go to the smallest token. Without
// gradients.
std::vector<std::vector<int32_t>> greedy(const EncoderDecoder& model,
                                         const EncoderDecoder::Memory& memory, DecodeBy way,
                                         int64_t outputs = 0);

}  // namespace attn
