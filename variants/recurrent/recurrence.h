// Recurrent cells along a sequence, forward and backward through time as one op. The product with
// the input is made for all positions at once by the caller; here is the one with the state,
// batched over the batch: 2·len·gates·dim² FLOPs, one position after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "variants/api/mixer.h"
#include "variants/recurrent/recurrent_cell.h"

namespace attn {

struct Recurrence {
  RecurrentCell cell = RecurrentCell::lstm;
  bool reverse = false;                   // from the last valid position to the first
  std::span<const int64_t> lengths = {};  // valid positions of each batch entry; empty: all
};

struct RecurrentWeights {
  Var input, bias;     // [in, gates·dim], [gates·dim]: LSTM i f g o, GRU r z n
  Var state;           // [dim, gates·dim]
  Var candidate_bias;  // [dim], GRU only: added to the state's part of n
};

// sums [batch, len, gates·dim], x·input + bias -> the states [batch, len, dim], from a state of
// zeros. Padding is not read and leaves the state as it is.
Var recurrence(const Var& sums, const RecurrentWeights& weights, const Recurrence& r);

// Of both products, and the state of the decoder.
Cost recurrence_cost(RecurrentCell cell, int64_t batch, int64_t len, int64_t in, int64_t dim);

// State h and c (GRU: h). A step costs 2·gates·dim·(in + dim) FLOPs and reads all weights.
std::unique_ptr<Decoder> recurrent_decoder(const Shape& position, int64_t capacity,
                                           RecurrentCell cell, const RecurrentWeights& weights);

}  // namespace attn
