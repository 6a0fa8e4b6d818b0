// From a batch of tokens or real values to vectors with positions: the encoder's first stage.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/model/encoder.h"

namespace attn {

class InputEmbedding {
 public:
  explicit InputEmbedding(const ModelConfig& config);
  // -> [sequences, length, width], or [sequences, 1 + length, width] with the cls vector in front.
  // `first`: the place of the first vector, for a batch that goes on where another ended.
  Var forward(const Batch& batch, int64_t first = 0) const;
  std::vector<Weight> weights() const { return weights_; }
  bool has_cls() const { return cls_.defined(); }

 private:
  Var content(const Batch& batch) const;  // [sequences, length, width]

  int64_t width_, vocab_, length_;
  Var table_;           // [vocab, width], tokens only
  Var slope_, offset_;  // [channels, width] and [width], real values only
  Var cls_;             // [width], if there is a cls vector
  Var positions_;       // [positions, width], undefined without positions and with rotary ones
  std::vector<Weight> weights_;
};

// Sinusoids of section 3.5 of arXiv:1706.03762: [length, width], sines in the even columns, cosines
// in the odd ones.
Tensor sinusoids(int64_t length, int64_t width);

}  // namespace attn
