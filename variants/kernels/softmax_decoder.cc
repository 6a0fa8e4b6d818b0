// One query against a cache, online softmax over blocks of it; see softmax_decoder.h. Bound by
// reading the cache: keys lie as [dim][64] panels, so that both products run along memory. Parallel
// over batch × heads, and over parts of the cache where those do not share out evenly.
#include "variants/kernels/softmax_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "core/counters.h"
#include "core/kernels/product.h"
#include "core/kernels/rows.h"
#include "core/parallel.h"
#include "core/recycled.h"
#include "variants/kernels/panel_cache.h"
#include "variants/kernels/softmax_merge.h"
#include "variants/kernels/workers.h"

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
    return 4 * static_cast<double>(heads() * head_dim() * std::min(length() + 1, slots_));
  }
  double do_step_bytes() const override {  // the cache read, one position of it written
    const int64_t positions = std::min(length() + 1, slots_) + 1;
    return 2 * static_cast<double>(sizeof(real)) *
           static_cast<double>(heads() * head_dim() * positions);
  }

  void score(int64_t head, int64_t slot, int64_t count, const real* query, real* logits) const;
  void attend(int64_t head, int64_t begin, int64_t end, const real* query, RowSums& part) const;

  int64_t slots_;  // as many as a query can see; position p lies in slot p % slots
  PanelCache cache_;
  std::vector<RowSums, Recycled<RowSums>> parts_;  // of the cache, of each head, in a step
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

// Logits of `count` positions from `slot` on, which begins a panel.
void SoftmaxDecoder::score(int64_t head, int64_t slot, int64_t count, const real* query,
                           real* logits) const {
  const int64_t dim = head_dim(), full_panels = slots_ / kPanel * kPanel;
  const int64_t wide = std::clamp<int64_t>(full_panels - slot, 0, count), rest = count - wide;
  if (wide > 0)
    product(1, wide, dim, {query, dim}, packed(cache_.panel(head, slot), dim), logits, wide);
  if (rest > 0)
    product(1, rest, dim, {query, dim},
            {cache_.panel(head, slot + wide), cache_.panel_width(slot + wide)}, logits + wide,
            rest);
}

// Slots [begin, end), begin being a multiple of kBlock.
void SoftmaxDecoder::attend(int64_t head, int64_t begin, int64_t end, const real* query,
                            RowSums& part) const {
  const int64_t dim = head_dim();
  std::fill_n(part.sum, dim, real(0));
  alignas(64) real logits[kBlock];
  for (int64_t slot = begin; slot < end; slot += kBlock) {
    const int64_t count = std::min(kBlock, end - slot);
    score(head, slot, count, query, logits);
    add_keys(count, logits, cache_.values(head, slot), dim, part);
  }
}

void SoftmaxDecoder::do_step(const real* q, const real* k, const real* v, real* out) {
  const int64_t dim = head_dim(), count = std::min(length() + 1, slots_);
  // As few parts a head as give every thread the same number.
  const int64_t even = threads() / std::gcd<int64_t>(heads(), threads());
  const int64_t per_head = std::clamp<int64_t>(count / kLeastPart, 1, even);
  const int64_t blocks = (count + kBlock - 1) / kBlock, room = 2 * padded_reals(dim);
  const real scale = static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
  parts_.assign(static_cast<size_t>(heads() * per_head), {});
  const Block work(parts_.size() * static_cast<size_t>(room) * sizeof(real), Purpose::workspace);
  const int64_t slot = length() % slots_;
  over_range(heads() * per_head, dim * count / per_head, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t head = task / per_head, part = task % per_head;
      real* const query = static_cast<real*>(work.data()) + task * room;
      RowSums& found = parts_[static_cast<size_t>(task)];
      found.sum = query + padded_reals(dim);
      for (int64_t c = 0; c < dim; ++c) query[c] = scale * q[head * dim + c];
      const int64_t from = blocks * part / per_head * kBlock;
      const int64_t to = std::min(count, blocks * (part + 1) / per_head * kBlock);
      if (from <= slot && slot < to) cache_.put(head, slot, k + head * dim, v + head * dim);
      attend(head, from, to, query, found);
    }
  });
  for (int64_t head = 0; head < heads(); ++head) {
    RowSums* const first = &parts_[static_cast<size_t>(head * per_head)];
    for (int64_t p = 1; p < per_head; ++p) merge_row(dim, first[p], *first);
    divide_row(dim, first->sum, first->mass, out + head * dim);
  }
  count_flops(4 * static_cast<double>(heads() * count * dim));
  count_bytes(2 * static_cast<double>(sizeof(real)) *
              static_cast<double>(heads() * (count + 1) * dim));
}

}  // namespace

std::unique_ptr<Decoder> softmax_decoder(const Shape& position, int64_t capacity, int64_t window) {
  return std::make_unique<SoftmaxDecoder>(position, capacity,
                                          window < 0 ? capacity : std::min(window + 1, capacity));
}

}  // namespace attn
