// An attention whose logits take a bias of each distance, as the relative positions of ALiBi, T5
// and KERPLE are. A class that can also derives from DistanceBiased, and
// its trait is `distance_bias`.
#pragma once

#include <memory>

#include "variants/api/attention.h"

namespace attn {

class DistanceBiased {
 public:
  virtual ~DistanceBiased() = default;
  // Attention::forward() with table[h][j - i + kv_len - 1] added to the scaled logit of a key j and
  // a query at position i, the last query at the last key: table [heads, q_len + kv_len - 1]. The
  // mask has no edges.
  virtual Var biased_forward(const Var& q, const Var& k, const Var& v, const Mask& mask,
                             const Var& table) const = 0;
  // Attention::do_decoder() with such a bias: distances [heads, at least capacity], of keys 0, 1,
  // ... positions before the query.
  virtual std::unique_ptr<Decoder> biased_decoder(const Shape& position, int64_t capacity,
                                                  const Tensor& distances) const = 0;
};

// The attention where its logits take biases; null: they do not.
inline const DistanceBiased* as_distance_biased(const Attention& attention) {
  return dynamic_cast<const DistanceBiased*>(&attention);
}

}  // namespace attn
