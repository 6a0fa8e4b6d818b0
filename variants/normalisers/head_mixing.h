// Rows of talking heads: logits are mixed over heads, z'_g = Σ_h P[h, g]·z_h, then softmax, then
// the weights are mixed, w'_g = Σ_h W[h, g]·w_h. Shazeer et al. 2020, arXiv:2003.02436, section 4.
// 4·heads² FLOPs a pair of positions.
#pragma once

#include "core/tensor/tensor.h"
#include "variants/normalisers/row_weights.h"

namespace attn {

class HeadMixing final : public RowWeights {
 public:
  // mixing [2, heads, heads]: P, then W.
  explicit HeadMixing(const Tensor& mixing);

  int64_t room_reals(int64_t stride) const override;
  void weigh(const RowStrip& x) const override;
  RowStrip keep(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& spare) const override;
  void gradient(const RowStrip& x, const RowStrip& kept_maps, const RowStrip& g,
                double* learned) const override;

 private:
  Tensor mixing_;
};

}  // namespace attn
