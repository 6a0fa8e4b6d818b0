// An attention with weights that follow what it sees while a model is trained, beside the gradient,
// as centroids of k-means do (Roy et al. 2021, arXiv:2003.05997, section 4.1). A class that has
// such weights also derives from Following. A training calls it; measurements do not.
#pragma once

#include "variants/api/attention.h"

namespace attn {

class Following {
 public:
  virtual ~Following() = default;
  // After a step of training: moves those weights by what a forward pass of the step read, q and k
  // [batch, heads, len, head_dim]. The same inputs give the same bits.
  virtual void follow(const Tensor& q, const Tensor& k, const Mask& mask) const = 0;
};

// The attention where it has such weights; null: it has none.
inline const Following* as_following(const Attention& attention) {
  return dynamic_cast<const Following*>(&attention);
}

}  // namespace attn
