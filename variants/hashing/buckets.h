// Locality-sensitive hashing: random rotations map positions to buckets, and each round sorts the
// positions by bucket. Kitaev et al. 2020, arXiv:2001.04451, section 2. 2·n·rounds·directions·d
// FLOPs and one counting sort a round.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/memory.h"
#include "core/tensor/tensor.h"

namespace attn {

// The directions of one hash. The argmax of [x·R, -x·R] is one of 2·first buckets; for many
// buckets, a second argmax over 2·second values divides each of them.
struct HashShape {
  int64_t first = 1, second = 0;

  static HashShape of(int64_t buckets);  // at least so many; an even number
  int64_t directions() const { return first + second; }
  int64_t buckets() const { return 2 * first * (second > 0 ? 2 * second : 1); }
};

// Writes the bucket of each row of q [rows, dim] to buckets[round·bucket_stride + row]. `panels`
// are the packed directions of all rounds of the head. `scores` is a workspace of
// rows·hash_scores(rounds, shape) numbers.
void hash_rows(int64_t rows, const real* q, int64_t dim, const real* panels, int64_t rounds,
               HashShape shape, real* scores, int32_t* buckets, int64_t bucket_stride);
int64_t hash_scores(int64_t rounds, HashShape shape);

// For each head of each batch entry and each round: the valid positions sorted by (bucket,
// position), and the code of each position.
class SortedRounds {
 public:
  // q [batch, heads, len, dim], rotations [heads, rounds, directions, dim]. one_bucket:
  // nothing is hashed. Positions from lengths[b] on are left out. The code of the s-th sorted
  // position is s / divisor + stride·bucket; a large enough stride separates the buckets.
  SortedRounds(const Tensor& q, const Tensor& rotations, HashShape shape, bool one_bucket,
               const std::vector<int64_t>& lengths, int64_t divisor, int64_t stride);

  int64_t rounds() const { return rounds_; }
  const int32_t* order(int64_t head, int64_t round) const {
    return ints_ + (head * rounds_ + round) * len_;
  }
  const int32_t* codes(int64_t head, int64_t round) const {
    return ints_ + (heads_ * rounds_ + head * rounds_ + round) * len_;
  }
  static int64_t bytes(int64_t heads, int64_t rounds, int64_t len) {
    return 2 * heads * rounds * len * static_cast<int64_t>(sizeof(int32_t));
  }
  static int64_t workspace(int64_t heads, int64_t len, int64_t rounds, int64_t dim,
                           HashShape shape);

 private:
  void hash(const Tensor& q, const Tensor& rotations, HashShape shape);
  void sort(int64_t head, int64_t round, int64_t count, int64_t divisor, int64_t stride,
            int32_t* places);

  int64_t heads_, rounds_, len_, buckets_;
  Block block_;
  int32_t* ints_;  // all orders, then all codes
};

}  // namespace attn
