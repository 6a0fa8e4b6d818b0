// Random rotations and counting sorts; see buckets.h. Hashing is parallel over blocks of positions,
// sorting over rounds.
#include "variants/hashing/buckets.h"

#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/product.h"

namespace attn {
namespace {

constexpr int64_t kRows = 48;    // positions hashed at once
constexpr int64_t kBlock = 768;  // positions of a task: packing the directions costs a few percent

// Of [x, -x] for n numbers; the first of equal ones.
int64_t signed_argmax(const real* x, int64_t n) {
  int64_t best = 0;
  real most = -kInfinity;
  for (int64_t j = 0; j < n; ++j)
    if (x[j] > most) most = x[j], best = j;
  for (int64_t j = 0; j < n; ++j)
    if (-x[j] > most) most = -x[j], best = n + j;
  return best;
}

// ints of a sort's workspace, as reals
int64_t places_reals(int64_t buckets) {
  return (buckets + 1) * static_cast<int64_t>(sizeof(int32_t)) /
             static_cast<int64_t>(sizeof(real)) +
         1;
}

}  // namespace

HashShape HashShape::of(int64_t buckets) {
  constexpr int64_t kMost = 128;  // where the authors' code begins to factorise
  if (buckets <= kMost) return {std::max<int64_t>(1, (buckets + 1) / 2), 0};
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(buckets)));
  const int64_t first = (root + 1) / 2;
  return {first, (buckets + 4 * first - 1) / (4 * first)};
}

int64_t hash_scores(int64_t rounds, HashShape shape) {
  return (rounds * shape.directions() + kPanel - 1) / kPanel * kPanel;
}

void hash_rows(int64_t rows, const real* q, int64_t dim, const real* panels, int64_t rounds,
               HashShape shape, real* scores, int32_t* buckets, int64_t bucket_stride) {
  const int64_t each = shape.directions(), all = rounds * each;
  const int64_t stride = hash_scores(rounds, shape);
  product(rows, all, dim, {q, dim}, packed(panels, dim), scores, stride);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t round = 0; round < rounds; ++round) {
      const real* const own = scores + r * stride + round * each;
      int64_t bucket = signed_argmax(own, shape.first);
      if (shape.second > 0)
        bucket = bucket * 2 * shape.second + signed_argmax(own + shape.first, shape.second);
      buckets[round * bucket_stride + r] = static_cast<int32_t>(bucket);
    }
  count_flops(2 * static_cast<double>(rows * all * dim));
}

int64_t SortedRounds::workspace(int64_t heads, int64_t len, int64_t rounds, int64_t dim,
                                HashShape shape) {
  const int64_t all = rounds * shape.directions(), blocks = (len + kBlock - 1) / kBlock;
  return std::max(
      workspace_bytes(heads * blocks, packed_reals(all, dim) + kRows * hash_scores(rounds, shape)),
      workspace_bytes(heads * rounds, places_reals(shape.buckets())));
}

SortedRounds::SortedRounds(const Tensor& q, const Tensor& rotations, HashShape shape,
                           bool one_bucket, const std::vector<int64_t>& lengths, int64_t divisor,
                           int64_t stride)
    : heads_(q.dim(0) * q.dim(1)),
      rounds_(rotations.dim(1)),
      len_(q.dim(2)),
      buckets_(one_bucket ? 1 : shape.buckets()),
      block_(static_cast<size_t>(bytes(heads_, rounds_, len_)), MemoryScope::current()),
      ints_(static_cast<int32_t*>(block_.data())) {
  if (one_bucket)
    std::fill_n(ints_ + heads_ * rounds_ * len_, heads_ * rounds_ * len_, 0);
  else
    hash(q, rotations, shape);
  run_tasks(heads_ * rounds_, places_reals(buckets_), [&](int64_t task, real* work) {
    const int64_t head = task / rounds_;
    const int64_t count = lengths.empty() ? len_ : lengths[static_cast<size_t>(head / q.dim(1))];
    sort(head, task % rounds_, count, divisor, stride, reinterpret_cast<int32_t*>(work));
  });
}

// Leaves each position's bucket where its code will be.
void SortedRounds::hash(const Tensor& q, const Tensor& rotations, HashShape shape) {
  const Mark mark(Part::hashing);
  const int64_t d = q.dim(3), all = rounds_ * shape.directions();
  const int64_t blocks = (len_ + kBlock - 1) / kBlock, panels = packed_reals(all, d);
  run_tasks(
      heads_ * blocks, panels + kRows * hash_scores(rounds_, shape), [&](int64_t task, real* work) {
        const int64_t head = task / blocks, last = std::min(len_, (task % blocks + 1) * kBlock);
        pack_transposed(rotations.data() + head % q.dim(1) * all * d, all, d, d, work);
        for (int64_t i = task % blocks * kBlock; i < last; i += kRows)
          hash_rows(std::min(kRows, last - i), q.data() + (head * len_ + i) * d, d, work, rounds_,
                    shape, work + panels, ints_ + (heads_ + head) * rounds_ * len_ + i, len_);
      });
}

void SortedRounds::sort(int64_t head, int64_t round, int64_t count, int64_t divisor, int64_t stride,
                        int32_t* places) {
  const Mark mark(Part::sorting);
  int32_t* const order = ints_ + (head * rounds_ + round) * len_;
  int32_t* const codes = order + heads_ * rounds_ * len_;
  std::fill_n(places, buckets_ + 1, 0);
  for (int64_t i = 0; i < count; ++i) ++places[codes[i] + 1];
  for (int64_t b = 0; b < buckets_; ++b) places[b + 1] += places[b];
  for (int64_t i = 0; i < count; ++i) {
    const int32_t bucket = codes[i], place = places[bucket]++;
    order[place] = static_cast<int32_t>(i);
    codes[i] = static_cast<int32_t>(place / divisor + stride * bucket);
  }
}

}  // namespace attn
