// Decoding from compressed blocks: online softmax over panels of the cache; see
// compressed_memory.h. A step costs 4·d FLOPs a block, and one in `stride` steps 4·stride·d² for
// the block that it ends.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "variants/lowrank/compressed_memory.h"

namespace attn {
namespace {

class CompressedMemoryDecoder final : public Decoder {
 public:
  CompressedMemoryDecoder(const Shape& position, int64_t capacity, const Compression& keys,
                          const Compression& values)
      : Decoder(position, capacity),
        stride_(keys.stride()),
        nulls_(keys.null_row.defined() ? 1 : 0),
        by_keys_(keys),
        by_values_(values),
        cache_(heads(), nulls_ + capacity / stride_, head_dim(), head_dim()),
        recent_({2, heads(), stride_, head_dim()}) {
    const int64_t d = head_dim();
    for (int64_t head = 0; nulls_ > 0 && head < heads(); ++head) {
      const int64_t at = of_weights(head) * d;
      cache_.put(head, 0, keys.null_row.value().data() + at, values.null_row.value().data() + at);
    }
  }

 private:
  int64_t of_weights(int64_t head) const { return head % by_keys_.heads(); }
  int64_t slots_after(int64_t positions) const { return nulls_ + positions / stride_; }
  bool ends_block(int64_t position) const { return (position + 1) % stride_ == 0; }
  real* recent(int64_t which, int64_t head, int64_t row) const {
    return recent_.data() + ((which * heads() + head) * stride_ + row) * head_dim();
  }

  // Position `at` of one head; `block` holds 2·head_dim numbers.
  void put(int64_t head, int64_t at, const real* k, const real* v, real* block, Tally& done) const {
    const int64_t d = head_dim();
    std::copy_n(k, d, recent(0, head, at % stride_));
    std::copy_n(v, d, recent(1, head, at % stride_));
    if (!ends_block(at)) return;
    compress_block(by_keys_, of_weights(head), recent(0, head, 0), block);
    compress_block(by_values_, of_weights(head), recent(1, head, 0), block + d);
    cache_.put(head, slots_after(at), block, block + d);
    done.multiply_adds(2 * stride_ * d * d);
  }

  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), d = head_dim();
    run_tasks(heads(), 2 * d, [&](int64_t head, real* block) {
      Tally done;
      for (int64_t i = 0; i < len; ++i)
        put(head, length() + i, k.data() + (head * len + i) * d, v.data() + (head * len + i) * d,
            block, done);
    });
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t d = head_dim(), logits = padded_reals(kPanel), queries = padded_reals(d);
    const int64_t sums = GroupSums::reals(1, d);
    run_tasks(heads(), logits + queries + sums + 2 * d, [&](int64_t head, real* work) {
      Tally done;
      put(head, length(), k + head * d, v + head * d, work + logits + queries + sums, done);
      answer(head, q + head * d, work, out + head * d, done);
      done.moved<real>(moved());
    });
  }

  void answer(int64_t head, const real* q, real* logits, real* out, Tally& done) const {
    const int64_t d = head_dim(), count = slots_after(length() + 1);
    real* const query = logits + padded_reals(kPanel);
    const GroupSums sums = GroupSums::in(query + padded_reals(d), 1, d);
    const auto scale = static_cast<real>(std::numbers::log2e / std::sqrt(static_cast<double>(d)));
    for (int64_t c = 0; c < d; ++c) query[c] = scale * q[c];
    for (int64_t first = 0; first < count; first += kPanel) {
      const int64_t keys = std::min(kPanel, count - first);
      product(1, keys, d, {query, d}, {cache_.panel(head, first), cache_.panel_width(first)},
              logits, kPanel);
      add_keys(keys, logits, kPanel, cache_.values(head, first), d, sums);
      done.multiply_adds(2 * keys * d);
    }
    divide_row(d, sums.sum, sums.row_sum[0], out);
  }

  // Numbers of a step and a head: the cache is read, a position and perhaps a block are written.
  int64_t moved() const {
    const int64_t d = head_dim(), block = ends_block(length()) ? 2 * stride_ * d * (d + 1) : 0;
    return 2 * d * (slots_after(length() + 1) + 1) + block;
  }

  int64_t do_state_bytes() const override {
    return cache_.bytes() + recent_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    const int64_t d = head_dim(), block = ends_block(length()) ? 4 * stride_ * d * d : 0;
    return static_cast<double>(heads() * (4 * slots_after(length() + 1) * d + block));
  }
  double do_step_bytes() const override {
    return sizeof(real) * static_cast<double>(heads() * moved());
  }

  int64_t stride_, nulls_;
  Compression by_keys_, by_values_;
  PanelCache cache_;  // of nulls and blocks
  Tensor recent_;     // [keys and values, heads, stride, head_dim]: the block that has not ended
};

}  // namespace

std::unique_ptr<Decoder> compressed_memory_decoder(const Shape& position, int64_t capacity,
                                                   const Compression& keys,
                                                   const Compression& values) {
  return std::make_unique<CompressedMemoryDecoder>(position, capacity, keys, values);
}

double compressed_memory_bytes(const AttentionShape& s, int64_t stride, int64_t nulls) {
  return 2 * sizeof(real) *
         static_cast<double>(s.batch * s.heads * s.head_dim * (nulls + s.kv_len / stride + stride));
}

}  // namespace attn
