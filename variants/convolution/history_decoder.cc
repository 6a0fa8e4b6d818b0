// The rows of a sequence are contiguous; a step goes through them and the filter once. See
// history_decoder.h. Parallel over batch × heads.
#include "variants/convolution/history_decoder.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/counters.h"
#include "core/simd/rows.h"

namespace attn {
namespace {

class HistoryDecoder final : public Decoder {
 public:
  HistoryDecoder(const Shape& position, int64_t capacity, const HistoryFilter& by)
      : Decoder(position, capacity),
        heads_of_filter_(position[1]),
        by_(by),
        rows_({heads(), capacity, head_dim()}) {}

 private:
  real* row(int64_t head, int64_t at) const {
    return rows_.data() + (head * capacity() + at) * head_dim();
  }
  void put(int64_t head, int64_t at, const real* k, const real* v) const {
    real* const to = row(head, at);
    for (int64_t c = 0; c < head_dim(); ++c) to[c] = by_.gated ? k[c] * v[c] : v[c];
  }
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = v.dim(2), dim = head_dim();
    for (int64_t r = 0; r < heads() * len; ++r)
      put(r / len, length() + r % len, k.data() + r * dim, v.data() + r * dim);
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), at = length();
    over_range(heads(), dim * (at + 1), [&](int64_t begin, int64_t end) {
      Tally done;
      for (int64_t head = begin; head < end; ++head) {
        put(head, at, k + head * dim, v + head * dim);
        answer(head, at, out + head * dim);
        for (int64_t c = 0; by_.gated && c < dim; ++c) out[head * dim + c] *= q[head * dim + c];
        done.multiply_adds((at + 1) * dim);
        done.moved<real>(read_of_a_head(at));
      }
    });
  }
  // to = Σ_j filter[at - j]·row(j) + skip·row(at), j <= at
  void answer(int64_t head, int64_t at, real* to) const {
    const int64_t step = by_.filter.dim(1), dim = head_dim(),
                  column = head % heads_of_filter_ * dim;
    std::fill_n(to, dim, real(0));
    for (int64_t j = 0; j <= at; ++j) {
      const real *const tap = by_.filter.data() + (at - j) * step + column, *const x = row(head, j);
      ATTN_INDEPENDENT
      for (int64_t c = 0; c < dim; ++c) to[c] += tap[c] * x[c];
    }
    for (int64_t c = 0; by_.skip.defined() && c < dim; ++c)
      to[c] += by_.skip[column + c] * row(head, at)[c];
  }

  // Numbers of the rows and of the filter, and the row written.
  int64_t read_of_a_head(int64_t at) const { return (2 * (at + 1) + 1) * head_dim(); }
  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * rows_.size();
  }
  double do_step_flops() const override {
    return 2 * static_cast<double>(heads() * head_dim() * (length() + 1));
  }
  double do_step_bytes() const override {
    return sizeof(real) * static_cast<double>(heads() * read_of_a_head(length()));
  }

  int64_t heads_of_filter_;
  HistoryFilter by_;
  Tensor rows_;  // [batch · heads, capacity, head_dim]
};

}  // namespace

std::unique_ptr<Decoder> history_decoder(const Shape& position, int64_t capacity,
                                         const HistoryFilter& by) {
  ATTN_CHECK(capacity <= by.filter.dim(0), "the filter reaches {} positions, not {}",
             by.filter.dim(0), capacity);
  return std::make_unique<HistoryDecoder>(position, capacity, by);
}

}  // namespace attn
