// Attention of the queries of a group to the KV cache, by online softmax over blocks; see
// softmax_decoder.h. Bound by reading the cache: keys are stored as [dim][64] panels, so that both
// products read memory in order. Parallel over batch × heads, and over parts of the cache where
// heads do not divide evenly among the threads.
#include "variants/softmax/softmax_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/base/recycled.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/softmax/panel_cache.h"
#include "variants/softmax/softmax_merge.h"

namespace attn {
namespace {

constexpr int64_t kBlock = 4 * kPanel;      // positions at a time: their scores stay in L1
constexpr int64_t kLeastPart = 2 * kBlock;  // positions worth a part of their own: some 4 µs

class SoftmaxDecoder final : public Decoder {
 public:
  SoftmaxDecoder(const Shape& position, int64_t capacity, int64_t slots)
      : Decoder(position, capacity),
        slots_(slots),
        cache_(heads(), slots, head_dim(), head_dim()) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override;
  void do_step(const real* q, const real* k, const real* v, real* out) override;
  int64_t do_state_bytes() const override { return cache_.bytes(); }
  double do_step_flops() const override {
    return 4 * static_cast<double>(heads() * group() * head_dim() * std::min(length() + 1, slots_));
  }
  double do_step_bytes() const override {  // the cache read, one position of it written
    const int64_t positions = std::min(length() + 1, slots_) + 1;
    return 2 * static_cast<double>(sizeof(real)) *
           static_cast<double>(heads() * head_dim() * positions);
  }

  // What a part of the cache of one head is worked on with.
  struct Part {
    real *queries, *logits;  // [group, dim], [group, kBlock]
    GroupSums found;
  };
  int64_t part_reals() const {
    return padded_reals(group() * head_dim()) + group() * kBlock +
           GroupSums::reals(group(), head_dim());
  }
  Part begun(real* work, const real* q) const;
  void score(int64_t head, int64_t slot, int64_t count, const Part& part) const;
  void attend(int64_t head, int64_t begin, int64_t end, const Part& part, Tally& done) const;
  void finish(const Part* parts, int64_t count, real* out) const;

  int64_t slots_;  // as many as a query can see; position p lies in slot p % slots
  PanelCache cache_;
  std::vector<Part, Recycled<Part>> parts_;  // of the cache, of each head, in a step
};

void SoftmaxDecoder::do_extend(const Tensor& k, const Tensor& v) {
  const int64_t len = k.dim(2), unseen = std::max<int64_t>(0, len - slots_);
  parallel_for(heads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head)
      for (int64_t i = unseen; i < len; ++i)
        cache_.put(head, (length() + i) % slots_, k.data() + (head * len + i) * head_dim(),
                   v.data() + (head * len + i) * head_dim());
  });
}

SoftmaxDecoder::Part SoftmaxDecoder::begun(real* work, const real* q) const {
  const int64_t dim = head_dim(), size = group() * dim;
  const real scale = static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
  for (int64_t i = 0; i < size; ++i) work[i] = scale * q[i];
  real* const logits = work + padded_reals(size);
  return {work, logits, GroupSums::in(logits + group() * kBlock, group(), dim)};
}

// Logits of `count` positions from `slot` on, which begins a panel.
void SoftmaxDecoder::score(int64_t head, int64_t slot, int64_t count, const Part& part) const {
  const int64_t dim = head_dim(), full_panels = slots_ / kPanel * kPanel;
  const int64_t wide = std::clamp<int64_t>(full_panels - slot, 0, count), rest = count - wide;
  const Left queries{part.queries, dim};
  if (wide > 0)
    product(group(), wide, dim, queries, packed(cache_.panel(head, slot), dim), part.logits,
            kBlock);
  if (rest > 0)
    product(group(), rest, dim, queries,
            {cache_.panel(head, slot + wide), cache_.panel_width(slot + wide)}, part.logits + wide,
            kBlock);
}

// Slots [begin, end), begin being a multiple of kBlock.
void SoftmaxDecoder::attend(int64_t head, int64_t begin, int64_t end, const Part& part,
                            Tally& done) const {
  for (int64_t slot = begin; slot < end; slot += kBlock) {
    const int64_t count = std::min(kBlock, end - slot);
    score(head, slot, count, part);
    add_keys(count, part.logits, kBlock, cache_.values(head, slot), head_dim(), part.found);
    done.multiply_adds(2 * group() * count * head_dim());
    done.moved<real>(2 * count * head_dim());
  }
}

// The answers of one head's queries, out [group, dim], from all parts of its cache.
void SoftmaxDecoder::finish(const Part* parts, int64_t count, real* out) const {
  const int64_t dim = head_dim();
  for (int64_t r = 0; r < group(); ++r) {
    RowSums all = parts[0].found.row(r, dim);
    for (int64_t p = 1; p < count; ++p) merge_row(dim, parts[p].found.row(r, dim), all);
    divide_row(dim, all.sum, all.row_sum, out + r * dim);
  }
}

void SoftmaxDecoder::do_step(const real* q, const real* k, const real* v, real* out) {
  const int64_t dim = head_dim(), count = std::min(length() + 1, slots_);
  // As few parts a head as give every thread the same number.
  const int64_t even = threads() / std::gcd<int64_t>(heads(), threads());
  const int64_t per_head = std::clamp<int64_t>(count / kLeastPart, 1, even);
  const int64_t blocks = (count + kBlock - 1) / kBlock, slot = length() % slots_;
  parts_.assign(static_cast<size_t>(heads() * per_head), {});
  const Block work(parts_.size() * static_cast<size_t>(part_reals()) * sizeof(real),
                   Purpose::workspace);
  over_range(heads() * per_head, group() * dim * count / per_head, [&](int64_t begin, int64_t end) {
    Tally done;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / per_head, index = task % per_head;
      const Part part = parts_[static_cast<size_t>(task)] =
          begun(static_cast<real*>(work.data()) + task * part_reals(), q + head * group() * dim);
      const int64_t from = blocks * index / per_head * kBlock;
      const int64_t to = std::min(count, blocks * (index + 1) / per_head * kBlock);
      if (from <= slot && slot < to) {
        cache_.put(head, slot, k + head * dim, v + head * dim);
        done.moved<real>(2 * dim);
      }
      attend(head, from, to, part, done);
    }
  });
  for (int64_t head = 0; head < heads(); ++head)
    finish(&parts_[static_cast<size_t>(head * per_head)], per_head, out + head * group() * dim);
}

}  // namespace

std::unique_ptr<Decoder> softmax_decoder(const Shape& position, int64_t capacity, int64_t window) {
  return std::make_unique<SoftmaxDecoder>(position, capacity,
                                          window < 0 ? capacity : std::min(window + 1, capacity));
}

}  // namespace attn
