// An attention with a loss that fits its own weights to imitate softmax attention before a task is
// trained, as feature maps (Zhang et al. 2024, arXiv:2402.04347) or the scores of an indexer
// (DeepSeek-V3.2 2025, arXiv:2512.02556). A class that has one also derives from Mimicking, and its
// trait is `mimicry`.
#pragma once

#include "core/base/check.h"
#include "variants/api/attention.h"

namespace attn {

class Mimicking {
 public:
  virtual ~Mimicking() = default;
  // The mean, over all rows of queries that see a key, of the cross-entropy between the weights of
  // softmax attention and those of this attention; where heads share these, with the mean of their
  // softmax weights. One element. Its gradient is that of the attention's learned weights, and of
  // those that are moved; q [batch, heads, q_len, head_dim] and k [batch, heads, kv_len,
  // head_dim] stay as they are. Where q_len = kv_len, as in self-attention, queries at or beyond
  // kv_lengths are padding too and are left out. The mask has no edges.
  virtual Var mimicry_loss(const Tensor& q, const Tensor& k, const Mask& mask) const = 0;

  // Whether the fit can go on while a model is trained, by a loss over the keys alone that each
  // query attends to, of weights that the training does not learn.
  virtual bool can_go_on() const { return false; }
  // That loss; softmax weights are those among these keys.
  virtual Var chosen_mimicry_loss(const Tensor&, const Tensor&, const Mask&) const {
    throw_error("the fit of this attention does not go on while a model is trained");
  }
};

// The attention where it has such a loss; null: it has none.
inline const Mimicking* as_mimicking(const Attention& attention) {
  return dynamic_cast<const Mimicking*>(&attention);
}

}  // namespace attn
