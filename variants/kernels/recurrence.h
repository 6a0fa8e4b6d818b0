// Recurrent cells along a sequence, forward and backward through time as one op. The product with
// the input is made for all positions at once by the caller; here is the one with the state,
// batched over the batch: 2·len·gates·dim² FLOPs, one position after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "variants/kernels/recurrent_cell.h"
#include "variants/mixer.h"

namespace attn {

struct Recurrence {
  Cell cell = Cell::lstm;
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
Cost recurrence_cost(Cell cell, int64_t batch, int64_t len, int64_t in, int64_t dim);

// Matrices of the variance of uniform numbers in ±1/√dim, biases of zeros but for 1 at the LSTM's
// forget gate (Jozefowicz et al. 2015, PMLR 37, section 3.2). Each from a stream named after it.
RecurrentWeights draw_recurrent(Cell cell, int64_t in, int64_t dim, uint64_t seed,
                                const std::string& role);
std::vector<Weight> named(const RecurrentWeights& weights, const std::string& role);

// State h and c (GRU: h). A step costs 2·gates·dim·(in + dim) FLOPs and reads all weights.
std::unique_ptr<Decoder> recurrent_decoder(const Shape& position, int64_t capacity, Cell cell,
                                           const RecurrentWeights& weights);

}  // namespace attn
