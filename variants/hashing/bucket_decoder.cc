// Attention of one query to the last members of its buckets, by online softmax over blocks of 64
// keys; see bucket_decoder.h. The links of all rounds are followed together, the latest position
// first, so that a key of several rounds is visited once. Parallel over batch × heads.
#include "variants/hashing/bucket_decoder.h"

#include <algorithm>
#include <numbers>
#include <vector>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/workers.h"
#include "variants/hashing/gathered_chunks.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

constexpr int64_t kDecodedBlock = 64;  // keys at a time: they and their values stay in L1
constexpr int64_t kDecodedRows = 48;   // positions hashed at once where many are appended

int64_t ints(int64_t count) { return count * static_cast<int64_t>(sizeof(int32_t)); }

class BucketDecoder final : public Decoder {
 public:
  BucketDecoder(const Shape& position, int64_t capacity, const Tensor& rotations,
                const BucketOptions& options);

 private:
  // Of one head's step: offsets into its workspace.
  struct Room {
    int64_t query, values, scores, found, cursors, total;
    Room(int64_t dim, int64_t rounds, int64_t hash)
        : query(0),
          values(padded_reals(dim)),
          scores(values + kDecodedBlock * dim),
          found(scores + padded_reals(hash)),
          cursors(found + padded_reals(kDecodedBlock)),
          total(cursors + padded_reals(2 * rounds)) {}
  };

  bool do_keys_are_queries() const override { return true; }
  void do_extend(const Tensor& q, const Tensor& v) override;
  void do_step(const real* q, const real* k, const real* v, real* out) override;
  int64_t do_state_bytes() const override {
    return bucket_state_bytes(heads(), capacity(), head_dim(), rounds_, options_);
  }
  double do_step_flops() const override {
    const double dim = static_cast<double>(head_dim());
    return 2 * dim * static_cast<double>(heads() * directions_) + 4 * dim * keys();
  }
  double do_step_bytes() const override;
  double keys() const {  // that a step sees, over all heads
    return static_cast<double>(seen_ < 0 ? heads() * most_keys() : seen_);
  }
  int64_t most_keys() const { return std::min(length(), rounds_ * options_.chunk); }

  real* row(int64_t head, int64_t position) const {
    return rows_.data() + (head * capacity() + position) * 2 * head_dim();
  }
  int32_t* links(int64_t head, int64_t position) const {
    return static_cast<int32_t*>(links_.data()) + (head * capacity() + position) * rounds_;
  }
  int32_t& last(int64_t head, int64_t round, int32_t bucket) const {
    return static_cast<int32_t*>(lasts_.data())[(head * rounds_ + round) * buckets_ + bucket];
  }
  void hash(int64_t head, int64_t rows, const real* q, real* scores, int32_t* found) const;
  void forget(int64_t head) const;
  void put(int64_t head, int64_t position, const real* q, const real* v, const int32_t* bucket,
           int64_t apart) const;
  int64_t answer(int64_t head, const real* q, const real* v, real* out, Tally& done) const;
  void attend(int64_t head, int64_t count, real* work, RowSums& sums, Tally& done) const;

  BucketOptions options_;
  int64_t rounds_, directions_, buckets_;
  Room room_;
  int64_t filled_ = 0;  // positions put; above length() where steps were taken back
  int64_t seen_ = -1;   // keys of the last step, over all heads; -1: none was made
  Tensor rows_;         // [heads, positions, key and value, dim]
  // int32, -1: none. Of each position and round, the one before it in its bucket, [heads,
  // positions, rounds]; the latest of each bucket, [heads, rounds, buckets].
  Block links_, lasts_;
  Block panels_, work_;  // directions of each head of a batch entry, packed; of a step, each head's
  int64_t panel_reals_, panel_count_;
  std::vector<int64_t> counts_;  // keys that each head saw
};

BucketDecoder::BucketDecoder(const Shape& position, int64_t capacity, const Tensor& rotations,
                             const BucketOptions& options)
    : Decoder(position, capacity),
      options_(options),
      rounds_(rotations.dim(1)),
      directions_(options.one_bucket ? 0 : rounds_ * options.hash.directions()),
      buckets_(options.one_bucket ? 1 : options.hash.buckets()),
      room_(head_dim(), rounds_, hash_scores(rounds_, options.hash)),
      rows_({heads(), capacity, 2, head_dim()}),
      links_(static_cast<size_t>(ints(heads() * capacity * rounds_)), MemoryScope::current()),
      lasts_(static_cast<size_t>(ints(heads() * rounds_ * buckets_)), MemoryScope::current()),
      panel_reals_(packed_reals(directions_, head_dim())),
      panel_count_(position[1]),
      counts_(static_cast<size_t>(heads())) {
  ATTN_CHECK(options.masked && options.unit_keys && options.scale == 1,
             "decoding inside buckets is of the masked kind, with keys of length one");
  std::fill_n(static_cast<int32_t*>(lasts_.data()), heads() * rounds_ * buckets_, -1);
  work_ = Block(static_cast<size_t>(heads() * room_.total) * sizeof(real), Purpose::workspace);
  panels_ =
      Block(static_cast<size_t>(panel_count_ * panel_reals_) * sizeof(real), Purpose::workspace);
  for (int64_t head = 0; head < panel_count_; ++head)
    pack_transposed(rotations.data() + head * directions_ * head_dim(), directions_, head_dim(),
                    head_dim(), static_cast<real*>(panels_.data()) + head * panel_reals_);
}

double BucketDecoder::do_step_bytes() const {
  const double size = sizeof(real), dim = static_cast<double>(head_dim()),
               all = static_cast<double>(heads());
  // Rows and links of the keys seen and of the new one; the latest of its buckets twice.
  return size * 2 * dim * (keys() + all) + static_cast<double>(ints(rounds_)) * (keys() + 3 * all) +
         size * dim * static_cast<double>(panel_count_ * directions_);
}

// found[round · rows + row]
void BucketDecoder::hash(int64_t head, int64_t rows, const real* q, real* scores,
                         int32_t* found) const {
  if (options_.one_bucket) {
    std::fill_n(found, rows * rounds_, 0);
    return;
  }
  const real* const panels =
      static_cast<const real*>(panels_.data()) + head % panel_count_ * panel_reals_;
  hash_rows(rows, q, head_dim(), panels, rounds_, options_.hash, scores, found, rows);
}

// The positions that were taken back.
void BucketDecoder::forget(int64_t head) const {
  if (filled_ <= length()) return;
  for (int64_t round = 0; round < rounds_; ++round) {
    int32_t* const latest = &last(head, round, 0);
    for (int64_t b = 0; b < buckets_; ++b)
      while (latest[b] >= length()) latest[b] = links(head, latest[b])[round];
  }
}

void BucketDecoder::put(int64_t head, int64_t position, const real* q, const real* v,
                        const int32_t* bucket, int64_t apart) const {
  const int64_t dim = head_dim();
  real* const key = row(head, position);
  scale_rows_to(q, dim, unit_factor(q, dim), key);
  std::copy_n(v, dim, key + dim);
  for (int64_t round = 0; round < rounds_; ++round) {
    int32_t& latest = last(head, round, bucket[round * apart]);
    links(head, position)[round] = latest;
    latest = static_cast<int32_t>(position);
  }
}

void BucketDecoder::do_extend(const Tensor& q, const Tensor& v) {
  const int64_t len = q.dim(2), dim = head_dim(), stride = hash_scores(rounds_, options_.hash);
  run_tasks(heads(), kDecodedRows * (stride + rounds_), [&](int64_t head, real* work) {
    auto* const bucket = reinterpret_cast<int32_t*>(work + kDecodedRows * stride);
    forget(head);
    for (int64_t i = 0; i < len; i += kDecodedRows) {
      const int64_t rows = std::min(kDecodedRows, len - i), at = (head * len + i) * dim;
      hash(head, rows, q.data() + at, work, bucket);
      for (int64_t r = 0; r < rows; ++r)
        put(head, length() + i + r, q.data() + at + r * dim, v.data() + at + r * dim, bucket + r,
            rows);
    }
  });
  filled_ = length() + len;
}

void BucketDecoder::do_step(const real* q, const real*, const real* v, real* out) {
  const int64_t dim = head_dim();
  over_range(heads(), 4 * dim * most_keys(), [&](int64_t begin, int64_t end) {
    Tally done;
    for (int64_t head = begin; head < end; ++head) {
      forget(head);
      counts_[static_cast<size_t>(head)] =
          answer(head, q + head * dim, v + head * dim, out + head * dim, done);
    }
  });
  filled_ = length() + 1;
  seen_ = 0;
  for (const int64_t count : counts_) seen_ += count;
}

// Returns how many keys it saw.
int64_t BucketDecoder::answer(int64_t head, const real* q, const real* v, real* out,
                              Tally& done) const {
  const int64_t dim = head_dim();
  real* const work = static_cast<real*>(work_.data()) + head * room_.total;
  auto* const found = reinterpret_cast<int32_t*>(work + room_.found);
  auto* const cursors = reinterpret_cast<int32_t*>(work + room_.cursors);
  int32_t* const left = cursors + rounds_;         // more keys that a round shows
  hash(head, 1, q, work + room_.scores, cursors);  // counts its FLOPs
  // Heads of several sequences share their directions.
  if (head < panel_count_) done.moved<real>(directions_ * dim);
  put(head, length(), q, v, cursors, 1);
  done.moved<real>(2 * dim);
  done.moved<int32_t>(3 * rounds_);  // the latest of each bucket, read and written, and the link
  std::copy_n(links(head, length()), rounds_, cursors);
  std::fill_n(left, rounds_, static_cast<int32_t>(std::min(options_.chunk, capacity())));
  scale_rows_to(q, dim, static_cast<real>(std::numbers::log2e), work + room_.query);
  RowSums sums{.sum = out};
  std::fill_n(out, dim, real(0));
  int64_t total = 0, count = 0;
  while (true) {
    const int32_t latest = *std::max_element(cursors, cursors + rounds_);
    if (latest < 0) break;
    fetch_row(row(head, latest), 2 * dim);
    const int32_t* const before = links(head, latest);
    for (int64_t round = 0; round < rounds_; ++round)
      if (cursors[round] == latest) cursors[round] = --left[round] > 0 ? before[round] : -1;
    done.moved<int32_t>(rounds_);
    found[count++] = latest;
    ++total;
    if (count == kDecodedBlock) attend(head, count, work, sums, done), count = 0;
  }
  if (count > 0) attend(head, count, work, sums, done);
  if (total == 0) sums.row_sum = 1, std::copy_n(v, dim, out);  // it sees itself alone
  divide_row(dim, out, sums.row_sum, out);
  return total;
}

void BucketDecoder::attend(int64_t head, int64_t count, real* work, RowSums& sums,
                           Tally& done) const {
  const int64_t dim = head_dim();
  const auto* const found = reinterpret_cast<const int32_t*>(work + room_.found);
  alignas(64) real logits[kDecodedBlock];
  for (int64_t j = 0; j < count; ++j) {
    const real* const key = row(head, found[j]);
    logits[j] = row_dot(work + room_.query, key, dim);
    std::copy_n(key + dim, dim, work + room_.values + j * dim);
  }
  add_keys(count, logits, work + room_.values, dim, sums);
  done.multiply_adds(2 * count * dim);
  done.moved<real>(2 * count * dim);
}

}  // namespace

std::unique_ptr<Decoder> bucket_decoder(const Shape& position, int64_t capacity,
                                        const Tensor& rotations, const BucketOptions& options) {
  if (position[2] != 1) return nullptr;
  return std::make_unique<BucketDecoder>(position, capacity, rotations, options);
}

int64_t bucket_state_bytes(int64_t heads, int64_t positions, int64_t dim, int64_t rounds,
                           const BucketOptions& options) {
  const int64_t buckets = options.one_bucket ? 1 : options.hash.buckets();
  return heads * (positions * 2 * dim * static_cast<int64_t>(sizeof(real)) +
                  ints(rounds * (positions + buckets)));
}

}  // namespace attn
