// See row_decoder.h. First each sequence takes the position in and chooses rows; then each head
// attends.
#include "variants/selection/row_decoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "core/base/counters.h"
#include "core/simd/listed_rows.h"
#include "core/simd/rows.h"
#include "variants/selection/key_chooser.h"

namespace attn {
namespace {

int64_t ring_of(const RowOptions& o, int64_t capacity) { return std::min(o.window + 1, capacity); }
int64_t rows_of(const RowOptions& o, int64_t capacity) {
  return std::max<int64_t>(1, capacity / o.by.stride);
}

class RowDecoder final : public Decoder {
 public:
  RowDecoder(const Shape& position, int64_t capacity, const RowOptions& options)
      : Decoder(position, capacity, {options.by.width()}),
        o_(options),
        batch_(position[0]),
        ring_(ring_of(o_, capacity)),
        rows_(rows_of(o_, capacity)),
        near_({2, heads(), ring_, head_dim()}),
        far_({2, heads(), rows_, head_dim()}),
        recent_({2, heads(), o_.by.slots(), head_dim()}),
        logits_({heads(), o_.by.slots(), o_.by.width()}),
        places_(static_cast<size_t>(std::max(ring_, rows_))),
        chosen_(static_cast<size_t>(o_.chooses() ? batch_ * o_.keys : 0)),
        head_work_({heads(), gated_row_reals(o_.by) + 2 * head_dim()}),
        weights_({heads(), ring_ + seen_of(rows_) + head_dim()}) {
    std::iota(places_.begin(), places_.end(), 0);
    if (o_.chooses()) chooser_.emplace(batch_, rows_, o_.keys, o_.indexer);
  }

 private:
  int64_t sequence_heads() const { return heads() / batch_; }
  int64_t ended(int64_t positions) const { return positions / o_.by.stride; }
  int64_t seen_of(int64_t rows) const { return o_.chooses() ? std::min(o_.keys, rows) : rows; }
  bool chooses_next() const { return o_.chooses() && ended(length() + 1) > o_.keys; }
  bool ends_block(int64_t at) const { return (at + 1) % o_.by.stride == 0; }

  real* near(int64_t which, int64_t head) const {
    return near_.data() + (which * heads() + head) * ring_ * head_dim();
  }
  real* far(int64_t which, int64_t head) const {
    return far_.data() + (which * heads() + head) * rows_ * head_dim();
  }
  real* recent(int64_t which, int64_t head, int64_t slot) const {
    return recent_.data() + ((which * heads() + head) * o_.by.slots() + slot) * head_dim();
  }
  real* logits(int64_t head, int64_t slot) const {
    return logits_.data() + (head * o_.by.slots() + slot) * o_.by.width();
  }

  // Position `at` of one head.
  void put(int64_t head, int64_t at, const real* k, const real* v, const real* gate) const {
    const int64_t d = head_dim(), slot = at % o_.by.slots();
    std::copy_n(k, d, near(0, head) + at % ring_ * d);
    std::copy_n(v, d, near(1, head) + at % ring_ * d);
    std::copy_n(k, d, recent(0, head, slot));
    std::copy_n(v, d, recent(1, head, slot));
    std::copy_n(gate, o_.by.width(), logits(head, slot));
    if (ends_block(at)) compress(head, at / o_.by.stride);
  }

  void compress(int64_t head, int64_t block) const {
    const int64_t d = head_dim(), own = block % o_.by.parts() * o_.by.stride;
    BlockSlots slots{recent(0, head, own), recent(1, head, own), logits(head, own)};
    if (o_.by.overlap && block > 0) {
      const int64_t before = o_.by.stride - own;
      slots.earlier_k = recent(0, head, before), slots.earlier_v = recent(1, head, before);
      slots.earlier_logits = logits(head, before);
    }
    real* const work = head_work_.data() + head * head_work_.dim(1);
    real* const row = work + gated_row_reals(o_.by);
    gated_row(o_.by, head % o_.by.heads(), slots, work, row);
    std::copy_n(row, d, far(0, head) + block * d);
    std::copy_n(row + d, d, far(1, head) + block * d);
  }

  // The indexer's key of a block, from the rows of all heads.
  void put_index_key(int64_t b, int64_t block) const {
    chooser_->put(b, block, far(0, b * sequence_heads()) + block * head_dim(), rows_ * head_dim(),
                  1);
  }

  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), d = head_dim(), width = o_.by.width();
    over_range(heads(), len * d, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head)
        for (int64_t i = 0; i < len; ++i) {
          const int64_t row = head * len + i;
          put(head, length() + i, k.data() + row * d, v.data() + row * d,
              gates()[0].data() + row * width);
        }
    });
    for (int64_t b = 0; o_.chooses() && b < batch_; ++b)
      for (int64_t block = ended(length()); block < ended(length() + len); ++block)
        put_index_key(b, block);
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t d = head_dim(), each = sequence_heads(), width = o_.by.width();
    over_range(batch_, each * (width + 4 * d) + index_flops(), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t head = b * each; head < (b + 1) * each; ++head)
          put(head, length(), k + head * d, v + head * d, gates()[0].data() + head * width);
        if (o_.chooses() && ends_block(length())) put_index_key(b, ended(length()));
        if (chooses_next())
          chooser_->choose(b, ended(length() + 1), q + b * each * d, d,
                           chosen_.data() + b * o_.keys);
      }
    });
    const int64_t seen = near_next() + seen_of(ended(length() + 1));
    over_range(heads(), 2 * seen * d, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) attend(head, q + head * d, out + head * d);
    });
    count_flops(static_cast<double>(batch_ * index_flops() + heads() * 4 * seen * d));
    count_bytes(do_step_bytes());
  }

  void attend(int64_t head, const real* q, real* out) const {
    const int64_t d = head_dim(), seen = near_next(), rows = seen_of(ended(length() + 1)),
                  all = seen + rows;
    const int32_t* const which =
        chooses_next() ? chosen_.data() + head / sequence_heads() * o_.keys : places_.data();
    const ListedRows nearby{seen, d, places_.data()}, further{rows, d, which, true};
    real* const weights = weights_.data() + head * weights_.dim(1);
    real* const sum_of_rows = weights + weights_.dim(1) - d;
    dots_with_rows(nearby, q, near(0, head), weights);
    dots_with_rows(further, q, far(0, head), weights + seen);
    const real scale = static_cast<real>(1 / std::sqrt(static_cast<double>(d)));
    const real sink = o_.sinks.defined() ? o_.sinks[head % sequence_heads()] : -kInfinity,
               top = std::max(scale * max_in_row(weights, all), sink);
    const real sum = exp_row(all, weights, scale, top, weights) + std::exp(sink - top);
    weighted_rows(nearby, weights, near(1, head), out);
    weighted_rows(further, weights + seen, far(1, head), sum_of_rows);
    for (int64_t c = 0; c < d; ++c) out[c] = (out[c] + sum_of_rows[c]) / sum;
  }

  int64_t near_next() const { return std::min(ring_, length() + 1); }
  // Of a sequence's step.
  int64_t index_flops() const {
    const auto whole = [](double flops) { return static_cast<int64_t>(flops); };
    int64_t flops = 0;
    if (o_.chooses() && ends_block(length())) flops += whole(o_.indexer.key_flops());
    if (chooses_next())
      flops += whole(o_.indexer.query_flops()) +
               2 * o_.indexer.heads() * o_.indexer.dim() * ended(length() + 1);
    return flops;
  }
  int64_t block_slots() const {  // that the step makes a row of
    if (!ends_block(length())) return 0;
    return length() + 1 > o_.by.stride ? o_.by.slots() : o_.by.stride;
  }
  int64_t do_state_bytes() const override {
    const int64_t numbers =
        heads() * row_state_reals(o_, capacity()) + batch_ * row_index_reals(o_, capacity());
    return numbers * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    const int64_t seen = near_next() + seen_of(ended(length() + 1));
    return static_cast<double>(batch_ * index_flops() +
                               heads() * head_dim() * (4 * seen + 5 * block_slots()));
  }
  double do_step_bytes() const override {
    const int64_t d = head_dim(), seen = near_next() + seen_of(ended(length() + 1)),
                  index = chooses_next() ? o_.indexer.dim() * ended(length() + 1) : 0;
    return static_cast<double>(sizeof(real)) *
           static_cast<double>(batch_ * index +
                               heads() * (2 * d * (seen + 2 + block_slots()) + o_.by.width()));
  }

  RowOptions o_;
  int64_t batch_, ring_, rows_;
  Tensor near_, far_;       // [keys and values, heads, ring or rows, head_dim]
  Tensor recent_, logits_;  // of the last two blocks, or of the last
  std::optional<KeyChooser> chooser_;
  std::vector<int32_t> places_, chosen_;  // 0, 1, 2, ...; [batch, keys]
  Tensor head_work_, weights_;
};

}  // namespace

std::unique_ptr<Decoder> row_decoder(const Shape& position, int64_t capacity,
                                     const RowOptions& options) {
  return std::make_unique<RowDecoder>(position, capacity, options);
}

int64_t row_state_reals(const RowOptions& o, int64_t capacity) {
  const int64_t d = o.by.dim(), slots = o.by.slots();
  return 2 * d * (ring_of(o, capacity) + rows_of(o, capacity) + slots) + slots * o.by.width();
}

int64_t row_index_reals(const RowOptions& o, int64_t capacity) {
  return o.chooses() ? rows_of(o, capacity) * o.indexer.dim() : 0;
}

}  // namespace attn
