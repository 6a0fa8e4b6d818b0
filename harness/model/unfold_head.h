// The head that computes logits for all positions of a sequence from one vector: learned positions
// and one hidden layer, after the autoencoder of MAD. Poli et al. 2024, arXiv:2403.17844.
// Time O(size · length · hidden · classes), memory O(size · length · (hidden + classes)).
#pragma once

#include <cstdint>
#include <vector>

#include "core/autograd/var.h"
#include "harness/model/weights.h"

namespace attn {

class UnfoldHead {
 public:
  UnfoldHead(int64_t width, int64_t hidden, int64_t length, int64_t classes, uint64_t seed);
  // x [size, width] -> logits [size, length, classes]. The logits of a position are computed from x
  // plus the learned vector of the position.
  Var forward(const Var& x) const;
  std::vector<Weight> weights() const;

 private:
  Weight positions_;         // [length, width]
  Weight up_, up_bias_;      // [width, hidden], [hidden]
  Weight down_, down_bias_;  // [hidden, classes], [classes]
};

}  // namespace attn
