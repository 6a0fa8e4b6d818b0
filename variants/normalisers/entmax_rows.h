// Rows of entmax: p = argmax p·z + H_α(p), which is softmax at α = 1, sparsemax at 2 (Martins and
// Astudillo 2016, arXiv:1602.02068) and sparse between (Peters et al. 2019, arXiv:1905.05702):
// p_j = [(α-1)·z_j - θ]₊^(1/(α-1)), with θ such that the weights sum to 1.
#pragma once

#include "variants/normalisers/row_weights.h"

namespace attn {

class EntmaxWeights final : public RowWeights {
 public:
  explicit EntmaxWeights(double alpha) : alpha_(alpha) {}

  void weigh(const RowStrip& x) const override;
  // Leaves s = p^(2-α) on the support in `x`: for gradient() a lower power of what p is made of.
  RowStrip keep(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& spare) const override;
  // dz = s⊙(dp - Σs·dp/Σs).
  void gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                double* learned) const override;

 private:
  // Makes weights of the logits z, and s unless `slopes` is null. Weights or slopes may be z.
  void weigh_row(int64_t n, real* z, real* weights, real* slopes) const;

  double alpha_;
};

}  // namespace attn
