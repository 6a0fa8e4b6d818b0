// Hashing of locality-sensitive attention: positions into buckets by random rotations, and each
// round's positions sorted by bucket. Kitaev et al. 2020, arXiv:2001.04451, section 2.
// 2·n·rounds·directions·d FLOPs, and a counting sort a round.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/memory.h"
#include "core/tensor/tensor.h"

namespace attn {

// How many directions say a position's bucket: the argmax of [x·R, -x·R] is one of 2·first, and
// where buckets are many, a second argmax of 2·second splits each of these.
struct HashShape {
  int64_t first = 1, second = 0;

  static HashShape of(int64_t buckets);  // at least so many, of an odd number one more
  int64_t directions() const { return first + second; }
  int64_t buckets() const { return 2 * first * (second > 0 ? 2 * second : 1); }
};

// Buckets of `rows` queries q [rows, dim], buckets[round·apart + row], by `panels`: the directions
// of all rounds of their head, packed. `scores` has room for rows·hash_scores(rounds, shape).
void hash_rows(int64_t rows, const real* q, int64_t dim, const real* panels, int64_t rounds,
               HashShape shape, real* scores, int32_t* buckets, int64_t apart);
int64_t hash_scores(int64_t rounds, HashShape shape);

// Of each head of each batch entry and each round: the valid positions in the order of (bucket,
// position), and each position's code.
class SortedRounds {
 public:
  // q [batch, heads, len, dim], rotations [heads, rounds, directions, dim]. One bucket: all in the
  // order of positions. Positions from lengths[b] on are left out. `stride` tells the buckets
  // apart: the code of the s-th position in order is s / divide + stride·bucket.
  SortedRounds(const Tensor& q, const Tensor& rotations, HashShape shape, bool one_bucket,
               const std::vector<int64_t>& lengths, int64_t divide, int64_t stride);

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
  void sort(int64_t head, int64_t round, int64_t count, int64_t divide, int64_t stride,
            int32_t* places);

  int64_t heads_, rounds_, len_, buckets_;
  Block block_;
  int32_t* ints_;  // orders, then codes
};

}  // namespace attn
