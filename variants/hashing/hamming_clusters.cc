// Codes of queries and k-means among them; see hamming_clusters.h. Parallel over heads.
#include "variants/hashing/hamming_clusters.h"

#include <algorithm>
#include <bit>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "variants/hashing/counting_sort.h"

namespace attn {
namespace {

constexpr int64_t kCodeRows = 48;  // queries hashed at once

int64_t reals_of(int64_t bytes) {
  return padded_reals(bytes / static_cast<int64_t>(sizeof(real)) + 1);
}

// The first of the nearest centroids. Distance and number are one integer, so that the loop
// vectorises.
int32_t nearest(uint64_t code, const uint64_t* centroids, int64_t count) {
  uint64_t best = ~uint64_t{0};
  for (int64_t c = 0; c < count; ++c) {
    const auto distance = static_cast<uint64_t>(std::popcount(code ^ centroids[c]));
    best = std::min(best, distance << 32 | static_cast<uint64_t>(c));
  }
  return static_cast<int32_t>(best & 0xffffffff);
}

}  // namespace

// Of one head.
struct QueryClusters::Room {
  real *panels, *scores;  // packed planes, [kCodeRows, kMostBits]
  uint64_t *codes, *centroids;
  int32_t *cluster_of, *ones, *sizes;  // [len], [clusters, kMostBits], [clusters]

  Room(real* work, int64_t len, int64_t dim, int64_t clusters) {
    const auto take = [&](int64_t bytes) {
      real* const here = work;
      work += reals_of(bytes);
      return here;
    };
    panels = take(packed_reals(kMostBits, dim) * static_cast<int64_t>(sizeof(real)));
    scores = take(kCodeRows * kMostBits * static_cast<int64_t>(sizeof(real)));
    codes = reinterpret_cast<uint64_t*>(take(len * 8));
    centroids = reinterpret_cast<uint64_t*>(take(clusters * 8));
    cluster_of = reinterpret_cast<int32_t*>(take(len * 4));
    ones = reinterpret_cast<int32_t*>(take(clusters * kMostBits * 4));
    sizes = reinterpret_cast<int32_t*>(take(clusters * 4));
  }
  static int64_t reals(int64_t len, int64_t dim, int64_t clusters) {
    return reals_of(packed_reals(kMostBits, dim) * static_cast<int64_t>(sizeof(real))) +
           reals_of(kCodeRows * kMostBits * static_cast<int64_t>(sizeof(real))) +
           reals_of(len * 8) + reals_of(clusters * 8) + reals_of(len * 4) +
           reals_of(clusters * kMostBits * 4) + reals_of(clusters * 4);
  }
};

int64_t QueryClusters::workspace(int64_t heads, int64_t len, int64_t dim, int64_t clusters) {
  return workspace_bytes(heads, Room::reals(len, dim, std::min(clusters, len)));
}

QueryClusters::QueryClusters(const Tensor& q, const Tensor& planes, int64_t clusters,
                             int64_t iterations, const std::vector<int64_t>& lengths)
    : heads_(q.dim(0) * q.dim(1)),
      len_(q.dim(2)),
      clusters_(std::min(clusters, q.dim(2))),
      bits_(planes.dim(1)),
      block_(static_cast<size_t>(bytes(heads_, len_, clusters_)), MemoryScope::current()),
      ints_(static_cast<int32_t*>(block_.data())) {
  const Mark mark(Part::selection);
  run_tasks(heads_, Room::reals(len_, q.dim(3), clusters_), [&](int64_t head, real* work) {
    const int64_t count = lengths.empty() ? len_ : lengths[static_cast<size_t>(head / q.dim(1))];
    const Room room(work, len_, q.dim(3), clusters_);
    if (clusters >= count) {
      for (int64_t i = 0; i < count; ++i) room.cluster_of[i] = static_cast<int32_t>(i);
    } else {
      hash(q, planes, head, count, room);
      cluster(count, iterations, room);
    }
    sort(head, count, room.cluster_of);
  });
}

void QueryClusters::hash(const Tensor& q, const Tensor& planes, int64_t head, int64_t count,
                         const Room& room) const {
  const Mark mark(Part::hashing);
  const int64_t dim = q.dim(3);
  const real* const own = planes.data() + head % q.dim(1) * bits_ * (dim + 1);
  pack_transposed(own, bits_, dim, dim + 1, room.panels);
  for (int64_t i = 0; i < count; i += kCodeRows) {
    const int64_t rows = std::min(kCodeRows, count - i);
    product(rows, bits_, dim, {q.data() + (head * len_ + i) * dim, dim}, packed(room.panels, dim),
            room.scores, kMostBits);
    for (int64_t r = 0; r < rows; ++r) {
      uint64_t code = 0;
      for (int64_t b = 0; b < bits_; ++b)
        code |= uint64_t{room.scores[r * kMostBits + b] + own[b * (dim + 1) + dim] > 0} << b;
      room.codes[i + r] = code;
    }
  }
  count_flops(2 * static_cast<double>(count * bits_ * dim));
}

void QueryClusters::cluster(int64_t count, int64_t iterations, const Room& room) const {
  for (int64_t c = 0; c < clusters_; ++c) room.centroids[c] = room.codes[c * count / clusters_];
  std::fill_n(room.cluster_of, count, -1);
  for (int64_t step = 0;; ++step) {
    bool moved = false;
    for (int64_t i = 0; i < count; ++i) {
      const int32_t found = nearest(room.codes[i], room.centroids, clusters_);
      moved |= found != room.cluster_of[i];
      room.cluster_of[i] = found;
    }
    if (step == iterations || !moved) return;
    std::fill_n(room.ones, clusters_ * kMostBits, 0);
    std::fill_n(room.sizes, clusters_, 0);
    for (int64_t i = 0; i < count; ++i) {
      int32_t* const ones = room.ones + room.cluster_of[i] * kMostBits;
      const uint64_t code = room.codes[i];
      for (int64_t b = 0; b < kMostBits; ++b) ones[b] += static_cast<int32_t>(code >> b & 1);
      ++room.sizes[room.cluster_of[i]];
    }
    for (int64_t c = 0; c < clusters_; ++c) {
      if (room.sizes[c] == 0) continue;
      uint64_t majority = 0;
      for (int64_t b = 0; b < bits_; ++b)
        majority |= uint64_t{2 * room.ones[c * kMostBits + b] > room.sizes[c]} << b;
      room.centroids[c] = majority;
    }
  }
}

void QueryClusters::sort(int64_t head, int64_t count, const int32_t* cluster_of) const {
  counting_sort(count, cluster_of, clusters_, ints_ + heads_ * len_ + head * (clusters_ + 1),
                ints_ + head * len_);
}

}  // namespace attn
