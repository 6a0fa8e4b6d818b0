// A decoder with eviction: its state, and the weights of queries over what it holds; see
// eviction.h. evicting_decoder.cc has the steps, evicting_prompt.cc what is appended at once.
// Private to the engine.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/recycled.h"
#include "variants/api/forgetting.h"
#include "variants/softmax/decode_cache.h"
#include "variants/softmax/eviction.h"
#include "variants/softmax/held_positions.h"

namespace attn {

inline SlotRecords records_of(Evict method) {
  return {.scores = method == Evict::h2o || method == Evict::norm || method == Evict::random,
          .weights = method == Evict::h2o || method == Evict::tova};
}

inline int64_t row_width(int64_t columns) {
  return (columns + kRowMultiple - 1) / kRowMultiple * kRowMultiple;
}

class EvictingDecoder final : public Decoder, public WeighsPrompts, public TellsPositions {
 public:
  EvictingDecoder(const Shape& position, int64_t capacity, const Eviction& eviction)
      : Decoder(position, capacity),
        eviction_(eviction),
        // TOVA's choice is one for all heads of a sequence.
        together_(eviction.method == Evict::tova ? position[1] : 1),
        held_(made(first_slots())),
        victims_(static_cast<size_t>(heads() / together_)) {}

  bool weighs_prompts() const override {
    return eviction_.method == Evict::h2o || eviction_.method == Evict::tova ||
           eviction_.method == Evict::snapkv;
  }
  void take_queries(const Tensor& q) override { queries_ = q; }
  std::vector<std::vector<int32_t>> positions_seen(const Tensor& q) const override;

 private:
  HeldPositions made(int64_t slots) const {
    return {heads(), slots, head_dim(), records_of(eviction_.method)};
  }
  int64_t first_slots() const {
    if (eviction_.at_prompt_alone) return capacity();
    return std::min(capacity(), eviction_.positions(capacity()) + 1);
  }
  bool is_taken_back() const { return is_stepped_ && length() < seen_; }

  void do_extend(const Tensor& k, const Tensor& v) override;
  void do_step(const real* q, const real* k, const real* v, real* out) override;

  void put(int64_t head, int64_t slot, int64_t position, const real* k, const real* v);
  // Logits [rows, row_width(count)] of queries [rows, dim], which get scaled, to `count` slots.
  void score(int64_t head, const real* q, int64_t rows, int64_t count, real* queries,
             real* logits) const;
  // The workspace of rows_of_weights().
  int64_t weight_reals(int64_t rows, int64_t count) const {
    return padded_reals(rows * head_dim()) + padded_reals(rows * row_width(count)) +
           padded_reals(3 * rows);
  }
  // Calls add(r, weights, 1 / their sum) for each query r of `rows`, which sees `visible(r)` slots.
  template <class Visible, class Add>
  void each_row(int64_t head, const real* q, int64_t rows, int64_t count, real* work,
                const Visible& visible, const Add& add) const;
  void add_prompt_weights(int64_t head, int64_t len, int64_t before, real* work) const;
  void remember_queries(int64_t len);

  void settle();
  void choose_victims();
  void end_prompt();
  // What of slots with the lowest ranks is forgotten first, at `so_far` positions.
  double rank(int64_t head, int64_t slot, int64_t so_far, int64_t budget) const;
  void weigh_last_query();
  std::vector<double> observed(int64_t head, int64_t window) const;
  std::vector<int32_t> best(int64_t choice, int64_t budget) const;

  int64_t next_seen() const;
  int64_t do_state_bytes() const override {
    return held_.bytes() +
           (queries_held_.defined() ? queries_held_.size() * int64_t{sizeof(real)} : 0);
  }
  double do_step_flops() const override {
    return 4 * static_cast<double>(heads() * group() * head_dim() * next_seen());
  }
  double do_step_bytes() const override {
    return static_cast<double>(heads() * (next_seen() + 1) * slot_bytes());
  }
  int64_t slot_bytes() const {
    return 2 * head_dim() * int64_t{sizeof(real)} + records_of(eviction_.method).bytes();
  }

  Eviction eviction_;
  int64_t together_;  // heads for which one choice is made
  HeldPositions held_;
  int64_t count_ = 0;         // slots in use
  int64_t seen_ = 0;          // positions appended
  bool is_stepped_ = false;   // the last of them by a step that is not settled
  bool has_victims_ = false;  // and it makes a slot of each head go
  std::vector<int32_t, Recycled<int32_t>> victims_;  // [heads / together_]
  std::optional<int64_t> prompt_;                    // where the prompt began that has not ended
  Tensor queries_;                                   // of the positions that are being appended
  Tensor queries_held_;  // [heads, group, so many, dim]: the last ones of the prompt
};

template <class Visible, class Add>
void EvictingDecoder::each_row(int64_t head, const real* q, int64_t rows, int64_t count, real* work,
                               const Visible& visible, const Add& add) const {
  const int64_t width = row_width(count);
  real* const logits = work + padded_reals(rows * head_dim());
  real* const sums = logits + padded_reals(rows * width);
  score(head, q, rows, count, work, logits);
  for (int64_t r = 0; r < rows; ++r)
    std::fill(logits + r * width + visible(r), logits + (r + 1) * width, -kInfinity);
  std::fill_n(sums, rows, -kInfinity);
  std::fill_n(sums + rows, rows, real(0));
  online_softmax_rows(rows, width, logits, width, sums, sums + rows, sums + 2 * rows);
  for (int64_t r = 0; r < rows; ++r)
    add(r, logits + r * width, 1 / static_cast<double>(sums[rows + r]));
}

}  // namespace attn
