// Decoding of synthetic attention with a cache of values, and of keys if the logits include q·kᵀ. A
// step costs 2·d FLOPs for each query and position and reads d numbers for each position, plus the
// cost of the logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/counters.h"
#include "core/tensor/tensor.h"
#include "variants/api/decoder.h"

namespace attn {

struct SyntheticLogits {
  // Writes the logits of the query at `position` and query head `head` for the keys [0, position];
  // q is the row of the query. Adds what it does to `done`.
  std::function<void(int64_t head, int64_t position, const real* q, real* logits, Tally& done)>
      fill;
  double flops = 0, reals = 0;            // for each key: FLOPs, and numbers of weights read
  double step_flops = 0, step_reals = 0;  // the same for each query
  bool products = false;                  // add q·k/√dim; keys are cached too
};
// A row of a matrix [heads, max_len, max_len].
SyntheticLogits matrix_logits(const Tensor& matrix);
// left[i]·right[j], both [heads, max_len, cols]; left undefined: relu(q)·right[j].
SyntheticLogits product_logits(const Tensor& left, const Tensor& right);
// As outer_attention, of relu(q)·left and relu(q)·right, which are [heads, dim, a] and [.., c].
SyntheticLogits outer_logits(const Tensor& left, const Tensor& right);

std::unique_ptr<Decoder> synthetic_decoder(const Shape& position, int64_t capacity,
                                           SyntheticLogits logits);

}  // namespace attn
