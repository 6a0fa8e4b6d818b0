// improved_clustered: clustered attention whose members weigh the top keys of their cluster again,
// with the mass that the mean query gives to them. Vyas et al. 2020, arXiv:2007.04825, eqs. 6-9.
// Time 6·clusters·n·d + 4·n·keys·d + 2·n·bits·d, and n·clusters·iterations counts of bits; memory
// n·d.
#include "variants/api/variant_info.h"
#include "variants/hashing/clustered_queries.h"
#include "variants/hashing/hamming_clusters.h"

namespace attn::variants {

VariantInfo improved_clustered() {
  return {
      .name = "improved_clustered",
      .family = "hashing or routing",
      .summary = "clustered attention; each query weighs the top keys of its cluster again",
      .paper = "Vyas et al. 2020, arXiv:2007.04825, eqs. 6-9",
      .cost_formula =
          "6·clusters·n·d + 4·n·keys·d + 2·n·bits·d FLOPs, and iterations·clusters·n bit counts; "
          "memory n·d",
      .traits = {.linear_time = true, .random = true, .convex = true},
      .params = {{"clusters", 100, "of queries; at least as many as queries: each is its own", 1,
                  65536},
                 {"keys", 32, "top keys of a cluster, which each member weighs again", 1, 65536},
                 {"bits", 63, "random projections whose signs are a query's code", 1,
                  QueryClusters::kMostBits},
                 {"iterations", 10, "of k-means among the codes", 0, 1000}},
      .make = [](const AttentionConfig& config) -> std::unique_ptr<Attention> {
        return std::make_unique<ClusteredQueries>(config, "improved_clustered.planes",
                                                  config.params.integer("keys"));
      },
      .reference =
          [](const ReferenceInputs& x) {
            return clustered_reference(x, x.params().integer("keys"));
          },
      .limit = limit_at_length("keys"),
      .notes =
          {"Of equal scores the earlier key is chosen. The choice has no gradient; the mass of the "
           "chosen keys has one.",

           cluster_note()}};
}

}  // namespace attn::variants
