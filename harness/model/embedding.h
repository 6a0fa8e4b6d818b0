// The input embedding of the encoder: maps tokens or real values to vectors and adds positions.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/model/encoder.h"

namespace attn {

class InputEmbedding {
 public:
  explicit InputEmbedding(const ModelConfig& config);
  // -> [sequences, length, width], or [sequences, 1 + length, width] with a cls vector first.
  // `first` is the position of the first vector; it is not 0 for a batch that continues another.
  Var forward(const Batch& batch, int64_t first = 0) const;
  std::vector<Weight> weights() const { return weights_; }
  bool has_cls() const { return cls_.defined(); }

 private:
  Var content(const Batch& batch) const;  // [sequences, length, width]

  int64_t width_, vocab_, length_;
  Var table_;           // [vocab, width], tokens only
  Var slope_, offset_;  // [channels, width] and [width], real values only
  Var cls_;             // [width]; undefined without a cls vector
  Var positions_;       // [positions, width]; undefined with no positions or rotary positions
  std::vector<Weight> weights_;
};

// The sinusoids of arXiv:1706.03762, section 3.5: [length, width], with sines in the even columns
// and cosines in the odd columns.
Tensor sinusoids(int64_t length, int64_t width);

}  // namespace attn
