// Decoding of aft: running sums of what no bias can reach any more, and a ring of the keys and
// values that biases still reach, and of one more: a position goes into the sums a step late, so
// that a step can be taken back. See aft_attention.h.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/base/marks.h"
#include "core/base/workers.h"
#include "core/simd/rows.h"
#include "variants/synthetic/aft_attention.h"
#include "variants/synthetic/exponential_tiles.h"

namespace attn {
namespace {

class AftDecoder final : public Decoder {
 public:
  AftDecoder(const Shape& position, int64_t capacity, const AftBiases& biases)
      : Decoder(position, capacity),
        heads_of_biases_(position[1]),
        rank_(biases.rank()),
        biased_(biases.any()) {
    if (biases.distance.defined()) distance_ = biases.distance.value();
    if (rank_ > 0) {
      left_ = biases.left.value(), right_ = biases.right.value();
      ATTN_CHECK(capacity <= left_.dim(0), "aft was built for {} positions, got {}", left_.dim(0),
                 capacity);
      row_ = Tensor({capacity});
    }
    if (biased_) {
      near_ = biases.window > 0 ? std::min(biases.window, capacity) : capacity;
      keys_ = Tensor({heads(), std::min(near_ + 1, capacity), head_dim()});
      values_ = Tensor(keys_.shape());
    }
    if (!biased_ || biases.window > 0) {
      sums_ = Tensor({heads(), 3 * head_dim()});
      for (int64_t head = 0; head < heads(); ++head) clear_sums(head_dim(), sums(head));
    }
  }

 private:
  real* sums(int64_t head) const { return sums_.data() + head * 3 * head_dim(); }
  real* slot(const Tensor& ring, int64_t head, int64_t position) const {
    return ring.data() + (head * ring.dim(1) + position % ring.dim(1)) * head_dim();
  }
  // One source to the sums `state`.
  void add(const real* k, const real* v, real bias, real* state, real* work, Tally& done) const {
    add_source(head_dim(), k, v, nullptr, bias, state, work);
    done.other_flops(exponential_detail::kSourceFlops * head_dim());
  }
  void sum(int64_t head, int64_t position, real* state, real* work, Tally& done) const {
    add(slot(keys_, head, position), slot(values_, head, position), 0, state, work, done);
  }

  // Appends the position `at` of one head.
  void append(int64_t head, int64_t at, const real* k, const real* v, real* work,
              Tally& done) const {
    const int64_t dim = head_dim(), leaves = at - near_ - 1;
    if (!biased_) return add(k, v, 0, sums(head), work, done);
    if (leaves >= summed_) sum(head, leaves, sums(head), work, done);
    std::copy_n(k, dim, slot(keys_, head, at)), std::copy_n(v, dim, slot(values_, head, at));
  }

  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = v.dim(2), dim = head_dim();
    run_tasks(heads(), 2 * dim, [&](int64_t head, real* work) {
      const Mark mark(Part::sums);
      Tally done;
      for (int64_t i = 0; i < len; ++i)
        append(head, length() + i, k.data() + (head * len + i) * dim,
               v.data() + (head * len + i) * dim, work, done);
    });
    summed_ = std::max(summed_, length() + len - 1 - near_);
  }

  int64_t biased() const { return !biased_ ? 0 : std::min(near_, length() + 1); }
  bool has_left() const { return biased_ && length() >= near_; }  // the position length() - near

  // Of the position `back` before the query, which is the i-th of the row.
  real bias(int64_t head, int64_t back, int64_t i) const {
    if (!distance_.defined()) return row_[i];
    return distance_[head % heads_of_biases_ * distance_.dim(1) + back];
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), at = length(), first = at + 1 - biased();
    for (int64_t j = first; rank_ > 0 && j <= at; ++j)
      row_[j - first] = row_dot(left_.data() + at * rank_, right_.data() + j * rank_, rank_);
    if (rank_ > 0) count_flops(2 * static_cast<double>(rank_ * (at + 1 - first)));
    run_tasks(heads(), 5 * dim, [&](int64_t head, real* work) {
      const Mark mark(Part::sums);
      Tally done;
      real *const state = work, *const gate = work + 3 * dim, *const more = work + 4 * dim;
      append(head, at, k + head * dim, v + head * dim, more, done);
      if (sums_.defined())
        std::copy_n(sums(head), 3 * dim, state);
      else
        clear_sums(dim, state);
      if (has_left()) sum(head, at - near_, state, more, done);
      for (int64_t j = first; j <= at; ++j)
        add(slot(keys_, head, j), slot(values_, head, j), bias(head, at - j, j - first), state,
            more, done);
      for (int64_t r = head * group(); r < (head + 1) * group(); ++r) {
        sigmoid_row(dim, q + r * dim, gate);
        for (int64_t c = 0; c < dim; ++c)
          out[r * dim + c] = gate[c] * state[dim + c] / state[2 * dim + c];
      }
    });
    count_bytes(do_step_bytes());
    summed_ = std::max(summed_, at - near_);
  }

  int64_t do_state_bytes() const override {
    const auto size = [](const Tensor& x) { return x.defined() ? x.size() : 0; };
    return static_cast<int64_t>(sizeof(real)) * (size(keys_) + size(values_) + size(sums_));
  }
  double do_step_flops() const override {
    const bool sums_one = !biased_ || length() - near_ - 1 >= summed_;
    const int64_t added = biased() + (has_left() ? 1 : 0) + (sums_one ? 1 : 0);
    return static_cast<double>(exponential_detail::kSourceFlops * heads() * head_dim() * added +
                               2 * rank_ * biased());
  }
  double do_step_bytes() const override {
    const int64_t rows = biased() + (has_left() ? 1 : 0),
                  sums = sums_.defined() ? 2 * sums_.size() : 0;
    return sizeof(real) * static_cast<double>(2 * heads() * head_dim() * rows + sums +
                                              rank_ * (biased() + (rank_ > 0 ? 1 : 0)) +
                                              (distance_.defined() ? heads() * biased() : 0));
  }

  int64_t heads_of_biases_, rank_;
  bool biased_;
  int64_t near_ = 0;      // positions with biases
  int64_t summed_ = 0;    // positions in the sums; unused without biases
  Tensor left_, right_;   // [max_len, rank]
  Tensor distance_;       // [heads, window]
  Tensor keys_, values_;  // [heads, near + 1 or all, dim]
  Tensor sums_;           // [heads, 3·dim]
  Tensor row_;            // biases of a step
};

}  // namespace

std::unique_ptr<Decoder> aft_decoder(const Shape& position, int64_t capacity,
                                     const AftBiases& biases) {
  if (biases.distance.defined() && position[2] > 1) return nullptr;
  return std::make_unique<AftDecoder>(position, capacity, biases);
}

}  // namespace attn
