// What rfa and gated_rfa share: the features of unit rows by fixed random directions with a learned
// scale, and the reference. Peng et al. 2021, arXiv:2103.02143, sections 3.1 and 3.2.
#pragma once

#include "variants/api/reference.h"
#include "variants/features/features.h"
#include "variants/features/scaled_directions.h"
#include "variants/reference/features.h"
#include "variants/reference/gated.h"

namespace attn {

// Base: Attention or GatedAttention. Reads the parameters `directions` and `orthogonal`.
template <class Base>
class WaveAttention : public Base {
 protected:
  explicit WaveAttention(const AttentionConfig& config) : Base(config) {
    const int64_t heads = config.heads, dim = config.head_dim;
    const Params& params = this->params();
    omega_ =
        this->weight("omega",
                     random_directions(heads, params.integer("directions"), dim,
                                       params.flag("orthogonal"), rng(config.seed, "rfa.omega")),
                     false);
    scales_ = this->weight("scale", Tensor::full({heads, dim}, 1));
  }
  FeatureMap map() const { return unit_waves(scaled_directions(omega_.value(), scales_), true); }
  Cost cost_of_waves(const AttentionShape& shape, bool gated) const {
    Cost cost = linear_cost(shape, unit_waves(omega_, true), gated);
    cost.peak_bytes += sizeof(real) * static_cast<double>(omega_.value().size());  // scaled
    return cost;
  }

 private:
  Var omega_;   // [heads, directions, head_dim]
  Var scales_;  // [heads, head_dim]
};

inline oracle::Array wave_reference(const ReferenceInputs& x, const oracle::Visibility& visible,
                                    const oracle::OfPair& log_scale) {
  const auto features = [&](const oracle::Array& rows) {
    return oracle::waves(x.weights[0], x.weights[1], oracle::unit_rows(rows, 1e-6));
  };
  const oracle::Array q = features(x.q), k = features(x.k);
  const auto kernel = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return oracle::dot(q.row(b, h, i), k.row(b, h, j));
  };
  return oracle::kernel_ratio(x.q, x.v, visible, kernel, log_scale, 1e-3);
}

}  // namespace attn
