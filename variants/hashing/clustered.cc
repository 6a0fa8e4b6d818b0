// clustered: queries are grouped by codes of sign bits; the mean query of a group attends to all
// keys, and the members share the result. Vyas et al. 2020, arXiv:2007.04825, eqs. 3-5. Time
// 4·clusters·n·d + 2·n·bits·d, and n·clusters·iterations counts of bits; memory n·d.
#include "variants/api/variant_info.h"
#include "variants/hashing/hashing.h"
#include "variants/reference/clustered.h"

namespace attn::variants {
namespace {

class Clustered final : public Attention {
 public:
  explicit Clustered(const AttentionConfig& config)
      : Attention(config),
        options_{.clusters = params().integer("clusters"),
                 .iterations = params().integer("iterations")},
        planes_(weight("planes",
                       Tensor::normal({config.heads, params().integer("bits"), config.head_dim + 1},
                                      rng(config.seed, "clustered.planes")),
                       false)) {}

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return clustered_attention(q, k, v, planes_.value(), options_, mask.kv_lengths);
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return clustered_cost(shape, planes_.dim(1), options_);
  }

  ClusterOptions options_;
  Var planes_;  // [heads, bits, head_dim + 1], the offset last
};

oracle::Array clustered_reference(const ReferenceInputs& x) {
  const Params& p = x.params();
  const oracle::Array planes =
      oracle::reshaped(x.weights[0], 1, x.q.heads, p.integer("bits"), x.q.dim + 1);
  return oracle::clustered(x.q, x.k, x.v, planes, p.integer("clusters"), p.integer("iterations"), 0,
                           x.mask.kv_lengths);
}

}  // namespace

VariantInfo clustered() {
  return {
      .name = "clustered",
      .family = "hashing or routing",
      .summary = "softmax attention of the mean query of each cluster of queries",
      .paper = "Vyas et al. 2020, arXiv:2007.04825, eqs. 3-5",
      .cost_formula =
          "4·clusters·n·d + 2·n·bits·d FLOPs, and iterations·clusters·n bit counts; memory n·d",
      .traits = {.linear_time = true, .random = true, .convex = true},
      .params = {{"clusters", 100, "of queries; at least as many as queries: each is its own", 1,
                  65536},
                 {"bits", 63, "random projections whose signs are a query's code", 1,
                  QueryClusters::kMostBits},
                 {"iterations", 10, "of k-means among the codes", 0, 1000}},
      .make = make_as<Clustered>,
      .reference = clustered_reference,
      .limit = limit_at_length("clusters"),
      .notes = {"Planes are drawn once and have an offset; the authors draw them at every call. "
                "Centroids start at the codes of queries evenly apart, not at random ones, so that "
                "equal inputs give equal bits; a bit of a centroid on which members are even is 0. "
                "Clusters do not have a gradient. Not causal: a mean query holds later queries."}};
}

}  // namespace attn::variants
