// One query against some slots of a cache, online softmax over 64 of them at a time; see
// pattern_decoder.h. Bound by reading the slots seen. Parallel over batch × heads.
#include "variants/kernels/pattern_decoder.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/counters.h"
#include "core/kernels/rows.h"
#include "core/parallel.h"
#include "variants/kernels/softmax_merge.h"

namespace attn {
namespace {

constexpr int64_t kBlock = 64;  // slots at a time: their values stay in L1

class PatternDecoder final : public Decoder {
 public:
  PatternDecoder(const Shape& position, int64_t capacity, CacheLayout layout)
      : Decoder(position, capacity),
        layout_(std::move(layout)),
        keys_({heads(), layout_.slots, head_dim()}),
        values_({heads(), layout_.slots, head_dim()}),
        queries_({heads(), head_dim()}) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    for (int64_t i = 0; i < len; ++i)
      for (int64_t head = 0; head < heads(); ++head) {
        const int64_t from = (head * len + i) * dim;
        put(head, layout_.place(length() + i), k.data() + from, v.data() + from);
      }
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), slot = layout_.place(length());
    over_range(heads(), 4 * dim * visible() / heads(), [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head) {
        put(head, slot, k + head * dim, v + head * dim);
        answer(head, q + head * dim, out + head * dim);
      }
    });
    count_flops(do_step_flops());
    count_bytes(do_step_bytes());
  }

  void put(int64_t head, int64_t slot, const real* k, const real* v) const {
    const int64_t at = (head * layout_.slots + slot) * head_dim();
    std::copy_n(k, head_dim(), keys_.data() + at);
    std::copy_n(v, head_dim(), values_.data() + at);
  }

  void answer(int64_t head, const real* q, real* out) const {
    const int64_t dim = head_dim();
    const real scale = static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(dim)));
    real* const query = queries_.data() + head * dim;
    for (int64_t c = 0; c < dim; ++c) query[c] = scale * q[c];
    RowSums sums{.sum = out};
    std::fill_n(out, dim, real(0));
    for (const Span span : layout_.seen(head, length()))
      for (int64_t slot = span.begin; slot < span.end; slot += kBlock)
        attend(head, slot, std::min(kBlock, span.end - slot), query, sums);
    divide_row(dim, out, sums.mass, out);
  }

  void attend(int64_t head, int64_t slot, int64_t count, const real* query, RowSums& sums) const {
    const int64_t dim = head_dim(), at = (head * layout_.slots + slot) * dim;
    alignas(64) real logits[kBlock];
    for (int64_t j = 0; j < count; ++j)
      logits[j] = row_dot(query, keys_.data() + at + j * dim, dim);
    add_keys(count, logits, values_.data() + at, dim, sums);
  }

  int64_t visible() const {  // slots that the next query sees, over all heads
    int64_t count = 0;
    for (int64_t head = 0; head < heads(); ++head)
      for (const Span span : layout_.seen(head, length())) count += span.end - span.begin;
    return count;
  }

  int64_t do_state_bytes() const override {
    return 2 * keys_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override { return 4 * static_cast<double>(visible() * head_dim()); }
  double do_step_bytes() const override {  // the slots seen, and the one written
    return 2 * static_cast<double>(sizeof(real)) *
           static_cast<double>((visible() + heads()) * head_dim());
  }

  CacheLayout layout_;
  Tensor keys_, values_;  // [heads, slots, dim]
  Tensor queries_;        // [heads, dim], scaled
};

}  // namespace

std::unique_ptr<Decoder> pattern_decoder(const Shape& position, int64_t capacity,
                                         CacheLayout layout) {
  return std::make_unique<PatternDecoder>(position, capacity, std::move(layout));
}

std::vector<Span> ring_spans(Span positions, int64_t slots) {
  if (positions.begin >= positions.end) return {};
  const int64_t begin = positions.begin % slots, end = (positions.end - 1) % slots + 1;
  if (begin < end) return {{begin, end}};
  return {{begin, slots}, {0, end}};
}

}  // namespace attn
