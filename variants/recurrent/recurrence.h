// Recurrent cells over a sequence as one op, with backpropagation through time. The caller computes
// the product with the input for all positions at once. This op computes the product with the state
// for one position after the other, batched over the batch: 2·len·gates·dim² FLOPs.
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
  Var candidate_bias;  // [dim], GRU only: bias of n in the product with the state
};

// sums [batch, len, gates·dim] = x·input + bias -> the states [batch, len, dim]. The initial state
// is zero. Padding is not read and does not change the state.
Var recurrence(const Var& sums, const RecurrentWeights& weights, const Recurrence& r);

// The cost of both products, and the state of the decoder.
Cost recurrence_cost(RecurrentCell cell, int64_t batch, int64_t len, int64_t in, int64_t dim);

// The state is h and c (GRU: h). A step costs 2·gates·dim·(in + dim) FLOPs and reads all weights.
std::unique_ptr<Decoder> recurrent_decoder(const Shape& position, int64_t capacity,
                                           RecurrentCell cell, const RecurrentWeights& weights);

}  // namespace attn
