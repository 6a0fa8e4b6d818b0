// Rows of differential attention: the softmax of one part of queries and keys, less λ times that of
// the other. Ye et al. 2024, arXiv:2410.05258, eq. 1. Four passes over both maps.
#pragma once

#include "variants/normalisers/row_weights.h"

namespace attn {

class DifferentialWeights final : public RowWeights {
 public:
  explicit DifferentialWeights(real lambda);

  void weigh(const RowStrip& x) const override;
  RowStrip keep(const RowStrip& x, const RowStrip&, const RowStrip& spare) const override;
  void gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                double* learned) const override;

 private:
  real lambda_;
};

}  // namespace attn
