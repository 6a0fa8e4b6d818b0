// The parts that the forward and the backward of LSH attention share: the problem, the gathered
// rows of chunks, and the masked logits between them; see bucket_attention.h. Internal to
// bucket_*.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>

#include "core/base/marks.h"
#include "core/simd/attention_rows.h"
#include "core/simd/fetch.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/hashing/bucket_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {

inline constexpr int64_t kBucketStrip = 12;  // queries: their logits fit in the first-level cache
inline constexpr int64_t kBucketWideStrip = 96;  // the same in the backward: depth of products
inline constexpr double kNormEpsilon = 1e-6;     // added to mean squares, as in the authors' code
inline constexpr int64_t kMaxRounds = 256;       // size of the table of logarithms

// The factor that normalises a query to a key of length one.
inline real unit_factor(const real* query, int64_t dim) {
  return 1 / std::sqrt(row_dot(query, query, dim) + real(kNormEpsilon * static_cast<double>(dim)));
}

struct BucketProblem {
  Tensor q, v, rotations;
  BucketOptions options;
  Mask mask;
  std::shared_ptr<const SortedRounds> sorted;
  std::array<real, kMaxRounds + 1> log_count;  // log2 of the number of rounds

  int64_t heads() const { return q.dim(0) * q.dim(1); }
  int64_t length() const { return q.dim(2); }
  int64_t dim() const { return q.dim(3); }
  int64_t valid(int64_t head) const {
    return mask.kv_lengths.empty() ? length()
                                   : mask.kv_lengths[static_cast<size_t>(head / q.dim(1))];
  }
  int64_t chunk_size(int64_t head) const {
    if (options.masked) return options.chunk;
    return std::max<int64_t>(1, (valid(head) + options.chunks - 1) / options.chunks);
  }
  int64_t chunks(int64_t head) const {
    return (valid(head) + chunk_size(head) - 1) / chunk_size(head);
  }
  Span chunk(int64_t head, int64_t c) const {  // in sorted order
    return {c * chunk_size(head), std::min(valid(head), (c + 1) * chunk_size(head))};
  }
  // Chunks of the longest sequence.
  int64_t max_chunks() const {
    return options.masked ? (length() + options.chunk - 1) / options.chunk : options.chunks;
  }
  // The previous chunk, which chunk c sees too; -1: none.
  int64_t before(int64_t head, int64_t c) const {
    return c > 0 || options.masked || chunks(head) == 1 ? c - 1 : chunks(head) - 1;
  }
  // Limits of BucketCodes.
  int32_t min_gap() const { return mask.causal ? 1 : 0; }
  int32_t max_gap() const { return mask.causal ? static_cast<int32_t>(window()) : 1; }
  int64_t window() const { return std::min(options.chunk, length()); }
  real key_factor(const real* query) const {
    return options.unit_keys ? unit_factor(query, dim()) : real(1);
  }
};

// Offsets into a worker's workspace. Forward, the keys of two chunks at once; backward, of one.
struct BucketLayout {
  int64_t cols, stride, rows, total = 0;
  int64_t queries, keys, panels, values, scores, out, codes;
  int64_t value_panels = 0, grad_logits = 0, raw = 0, from = 0, dots = 0, sums = 0, to_keys = 0;

  BucketLayout(int64_t len, int64_t dim, int64_t rounds, int64_t chunk, bool backward)
      : cols(std::min(len, backward ? chunk : 2 * chunk)),
        stride(round_up(cols, kPanel)),
        rows(std::min({len, chunk, backward ? kBucketWideStrip : kBucketStrip})) {
    queries = take(rows * dim), keys = take(cols * dim), panels = take(packed_reals(cols, dim));
    values = take(cols * dim), scores = take(rows * stride), out = take(rows * dim);
    codes = take(ints(rounds * stride));
    if (!backward) return;
    value_panels = take(packed_reals(cols, dim)), grad_logits = take(rows * stride);
    raw = take(rows * dim), from = take(rows * dim), dots = take(rows), sums = take(rows);
    to_keys = take(cols * dim);
  }

 private:
  static int64_t ints(int64_t count) {
    return (count * static_cast<int64_t>(sizeof(int32_t)) + 7) / static_cast<int64_t>(sizeof(real));
  }
  int64_t take(int64_t reals) {
    const int64_t at = total;
    total += padded_reals(reals);
    return at;
  }
};

// The gathered keys and values of up to two chunks, and the masked logits of strips of queries.
class GatheredChunks {
 public:
  GatheredChunks(const BucketProblem& p, const BucketLayout& layout, int64_t head, int64_t round,
                 real* work)
      : p_(p),
        layout_(layout),
        head_(head),
        round_(round),
        dim_(p.dim()),
        rounds_(p.sorted->rounds()),
        first_row_(head * p.length()),
        work_(work),
        order_(p.sorted->order(head, round)) {}

  // Appends the keys and values at a span of sorted positions. Rows in bucket order are scattered
  // over memory; to fetch them ahead saves a quarter of the time at 16384 positions.
  void append(Span sorted) {
    const Mark mark(Part::gathering);
    const int64_t d = dim_;
    for (int64_t s = sorted.begin; s < sorted.end; ++s, ++count_) {
      const int64_t at = position(s), ahead = position_ahead(s, sorted.end);
      fetch_row(p_.q.data() + ahead * d, d);
      fetch_row(p_.v.data() + ahead * d, d);
      const real* const query = p_.q.data() + at * d;
      scale_rows_to(query, d, p_.key_factor(query), keys() + count_ * d);
      std::copy_n(p_.v.data() + at * d, d, values() + count_ * d);
      for (int64_t r = 0; p_.options.masked && r < rounds_; ++r)
        codes(r)[count_] = p_.sorted->codes(head_, r)[order_[s]];
    }
  }
  // Removes the rows before `from`. The next chunk sees the remaining ones, which are in the cache.
  void drop_before(int64_t from) {
    const Mark mark(Part::gathering);
    const int64_t d = dim_, left = count_ - from;
    std::copy(keys() + from * d, keys() + count_ * d, keys());
    std::copy(values() + from * d, values() + count_ * d, values());
    for (int64_t r = 0; p_.options.masked && r < rounds_; ++r)
      std::copy(codes(r) + from, codes(r) + count_, codes(r));
    count_ = left;
  }
  void pack() { pack_transposed(keys(), count_, dim_, dim_, work_ + layout_.panels); }

  int64_t count() const { return count_; }
  int64_t padded() const { return round_up(count_, kRowMultiple); }
  real* keys() const { return work_ + layout_.keys; }
  real* values() const { return work_ + layout_.values; }
  real* scores() const { return work_ + layout_.scores; }
  // The row of q, v and the output that stands at a sorted position.
  int64_t position(int64_t sorted) const { return first_row_ + order_[sorted]; }
  // The row that a loop up to `end` comes to soon, to prefetch.
  int64_t position_ahead(int64_t sorted, int64_t end) const {
    constexpr int64_t kAhead = 8;  // rows
    return position(std::min(sorted + kAhead, end - 1));
  }

  // Computes the logits of the queries at sorted positions. `own` is the column of the first
  // query's own key; it is at most -layout.rows if the keys are of another chunk.
  void fill_scores(Span queries, int64_t own) const {
    const int64_t d = dim_, rows = queries.end - queries.begin;
    const real factor = real(p_.options.scale * 1.4426950408889634);
    {
      const Mark mark(Part::gathering);
      for (int64_t r = 0; r < rows; ++r)
        scale_rows_to(p_.q.data() + position(queries.begin + r) * d, d, factor,
                      work_ + layout_.queries + r * d);
    }
    product(rows, padded(), d, {work_ + layout_.queries, d}, packed(work_ + layout_.panels, d),
            scores(), layout_.stride);
    const Mark mark(Part::masks);
    for (int64_t r = 0; r < rows; ++r) {
      real* const row = scores() + r * layout_.stride;
      if (p_.options.masked) hide(order_[queries.begin + r], row);
      std::fill(row + count_, row + padded(), -kInfinity);
      if (p_.options.masked && own + r >= 0) row[own + r] = -kInfinity;
    }
  }

 private:
  int32_t* codes(int64_t round) const {
    return reinterpret_cast<int32_t*>(work_ + layout_.codes) + round * layout_.stride;
  }

  // Masks the keys that query i does not see in this round. Subtracts log2 of the number of rounds
  // that show a key from the logits of the others.
  void hide(int64_t i, real* row) const {
    std::array<int32_t, kMaxRounds> mine;
    for (int64_t r = 0; r < rounds_; ++r)
      mine[static_cast<size_t>(r)] = p_.sorted->codes(head_, r)[i];
    mask_buckets(padded(),
                 {rounds_, layout_.stride, codes(0), mine.data(), p_.min_gap(), p_.max_gap()},
                 round_, p_.log_count.data(), row);
  }

  const BucketProblem& p_;
  const BucketLayout& layout_;
  const int64_t head_, round_, dim_, rounds_, first_row_;
  real* const work_;
  const int32_t* const order_;
  int64_t count_ = 0;
};

// Adds the gradients of q and v to grads[0] and grads[2]. log_sum [heads, len] is +infinity where a
// query sees itself alone, or nothing.
void bucket_backward(const BucketProblem& problem, const Tensor& out, const real* log_sum,
                     const Tensor& grad, std::span<Tensor> grads);

}  // namespace attn
