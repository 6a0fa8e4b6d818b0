// See clustered_queries.h. The planes are fixed; the clusters have no gradient.
#include "variants/hashing/clustered_queries.h"

#include "variants/reference/clustered.h"

namespace attn {

ClusteredQueries::ClusteredQueries(const AttentionConfig& config, const std::string& stream,
                                   int64_t keys)
    : Attention(config),
      options_{.clusters = params().integer("clusters"),
               .iterations = params().integer("iterations"),
               .keys = keys},
      planes_(weight("planes",
                     Tensor::normal({config.heads, params().integer("bits"), config.head_dim + 1},
                                    rng(config.seed, stream)),
                     false)) {}

Var ClusteredQueries::do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const {
  return clustered_attention(q, k, v, planes_.value(), options_, mask.kv_lengths);
}

Cost ClusteredQueries::do_cost(const AttentionShape& shape) const {
  return clustered_cost(shape, planes_.dim(1), options_);
}

oracle::Array clustered_reference(const ReferenceInputs& x, int64_t keys) {
  const Params& p = x.params();
  const oracle::Array planes =
      oracle::reshaped(x.weights[0], 1, x.q.heads, p.integer("bits"), x.q.dim + 1);
  return oracle::clustered(x.q, x.k, x.v, planes, p.integer("clusters"), p.integer("iterations"),
                           keys, x.mask.kv_lengths, x.rows);
}

std::string cluster_note() {
  return "Planes are drawn once and have an offset; the authors draw them at every call. Centroids "
         "start at the codes of queries evenly apart, not at random ones, so that equal inputs "
         "give equal bits; a bit of a centroid on which members are even is 0. Clusters do not "
         "have a gradient. Not causal: a mean query holds later queries.";
}

}  // namespace attn
