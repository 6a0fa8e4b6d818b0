// Clusters of queries: sign bits of random projections, and k-means among them by Hamming distance.
// Vyas et al. 2020, arXiv:2007.04825, section 3.2. 2·n·bits·d FLOPs, and iterations·n·clusters
// counts of bits.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/memory.h"
#include "core/base/span.h"
#include "core/tensor/tensor.h"

namespace attn {

// For each head of each batch entry: its valid queries sorted by (cluster, position). Where there
// are as many clusters as queries, each query is a cluster of its own.
class QueryClusters {
 public:
  static constexpr int64_t kMostBits = 64;

  // q [batch, heads, len, dim], planes [heads, bits, dim + 1], the offset last. Queries from
  // lengths[b] on are left out. Centroids start at the codes of queries that lie evenly apart; a
  // query goes to the first of the nearest centroids; a centroid's bit is that of most members, 0
  // where they are even; one without members stays.
  QueryClusters(const Tensor& q, const Tensor& planes, int64_t clusters, int64_t iterations,
                const std::vector<int64_t>& lengths);

  int64_t clusters() const { return clusters_; }  // at most len
  // The queries of one cluster of a head, ascending.
  const int32_t* order(int64_t head) const { return ints_ + head * len_; }
  Span members(int64_t head, int64_t cluster) const {
    const int32_t* const begin = ints_ + heads_ * len_ + head * (clusters_ + 1) + cluster;
    return {begin[0], begin[1]};
  }
  static int64_t bytes(int64_t heads, int64_t len, int64_t clusters) {
    return heads * (len + clusters + 1) * static_cast<int64_t>(sizeof(int32_t));
  }
  static int64_t workspace(int64_t heads, int64_t len, int64_t dim, int64_t clusters);

 private:
  struct Room;
  void hash(const Tensor& q, const Tensor& planes, int64_t head, int64_t count,
            const Room& room) const;
  void cluster(int64_t count, int64_t iterations, const Room& room) const;
  void sort(int64_t head, int64_t count, const int32_t* cluster_of) const;

  int64_t heads_, len_, clusters_, bits_;
  Block block_;
  int32_t* ints_;  // all orders, then where each cluster begins
};

}  // namespace attn
