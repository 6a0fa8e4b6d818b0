// Expected collisions of sign hashes, of unit queries and keys: (1 - arccos(q·k)/π)^bits, pair by
// pair. Zeng et al. 2021, arXiv:2111.09714. Rows for strip_attention().
#pragma once

#include "variants/normalisers/normalisers.h"

namespace attn {

class CollisionWeights final : public RowWeights {
 public:
  CollisionWeights(int64_t bits, int64_t dim);

  void weigh(const RowStrip& x) const override;
  RowStrip keep(const RowStrip& x, const RowStrip& kept_maps, const RowStrip&) const override;
  void gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                double* learned) const override;

 private:
  struct Weight {
    real value, slope;  // with respect to the logit
  };
  Weight weight_of(real logit) const;

  int64_t bits_;
  real root_;  // logits are products over √dim
};

// One forward without gradients, of rows over their size, as those of the output are.
Cost expected_collision_cost(const AttentionShape& shape, const RowWeights& rule);

}  // namespace attn
