// clustered: queries are grouped by codes of sign bits; the mean query of a group attends to all
// keys, and the members share the result. Vyas et al. 2020, arXiv:2007.04825, eqs. 3-5. Time
// 4·clusters·n·d + 2·n·bits·d, and n·clusters·iterations counts of bits; memory n·d.
#include "variants/api/variant_info.h"
#include "variants/hashing/clustered_queries.h"
#include "variants/hashing/hamming_clusters.h"

namespace attn::variants {

VariantInfo clustered() {
  return {.name = "clustered",
          .family = "hashing or routing",
          .summary = "softmax attention of the mean query of each cluster of queries",
          .paper = "Vyas et al. 2020, arXiv:2007.04825, eqs. 3-5",
          .cost_formula =
              "4·clusters·n·d + 2·n·bits·d FLOPs, and iterations·clusters·n bit counts; memory n·d",
          .traits = {.linear_time = true, .random = true, .convex = true},
          .params = {{"clusters", 100, "of queries; at least as many as queries: each is its own",
                      1, 65536},
                     {"bits", 63, "random projections whose signs are a query's code", 1,
                      QueryClusters::kMostBits},
                     {"iterations", 10, "of k-means among the codes", 0, 1000}},
          .make = [](const AttentionConfig& config) -> std::unique_ptr<Attention> {
            return std::make_unique<ClusteredQueries>(config, "clustered.planes", 0);
          },
          .reference = [](const ReferenceInputs& x) { return clustered_reference(x, 0); },
          .limit = limit_at_length("clusters"),
          .notes = {cluster_note()}};
}

}  // namespace attn::variants
