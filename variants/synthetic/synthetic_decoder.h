// Decoding where logits do not come from keys alone: a cache of values, half of what softmax
// attention keeps, and of keys where their products are added. A step costs 2·d FLOPs for each
// query and position, and reads d numbers for each position, besides its logits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/tensor/tensor.h"
#include "variants/api/decoder.h"

namespace attn {

struct SyntheticLogits {
  // Logits of the query at `position` to keys [0, position], of query head `head` of a batch entry;
  // q is its row. Counts no FLOPs.
  std::function<void(int64_t head, int64_t position, const real* q, real* logits)> fill;
  double flops = 0, reals = 0;            // for each key; reals: of weights read
  double step_flops = 0, step_reals = 0;  // for each query
  bool products = false;                  // q·k/√dim of the keys, cached too, is added
};
// Row of a matrix [heads, max_len, max_len].
SyntheticLogits matrix_logits(const Tensor& matrix);
// left[i]·right[j], both [heads, max_len, cols]; left undefined: relu(q)·right[j].
SyntheticLogits product_logits(const Tensor& left, const Tensor& right);
// As outer_attention, of relu(q)·left and relu(q)·right, which are [heads, dim, a] and [.., c].
SyntheticLogits outer_logits(const Tensor& left, const Tensor& right);

std::unique_ptr<Decoder> synthetic_decoder(const Shape& position, int64_t capacity,
                                           SyntheticLogits logits);

}  // namespace attn
