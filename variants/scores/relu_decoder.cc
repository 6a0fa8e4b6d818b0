// Decoding by relu attention; see relu_attention.h. Bound by reading the KV cache. Parallel over
// batch × heads.
#include <algorithm>
#include <cmath>

#include "core/base/counters.h"
#include "core/base/workers.h"
#include "core/simd/product.h"
#include "core/simd/rows.h"
#include "variants/scores/relu_attention.h"
#include "variants/softmax/softmax.h"

namespace attn {
namespace {

class ReluDecoder final : public Decoder {
 public:
  ReluDecoder(const Shape& position, int64_t capacity)
      : Decoder(position, capacity), cache_(heads(), capacity, head_dim(), head_dim()) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    over_range(heads(), len * dim, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * len; row < end * len; ++row)
        cache_.put(row / len, length() + row % len, k.data() + row * dim, v.data() + row * dim);
    });
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim(), count = length() + 1, rows = group();
    const Block block(static_cast<size_t>(heads() * work_reals()) * sizeof(real),
                      Purpose::workspace);
    over_range(heads(), rows * count * dim, [&](int64_t begin, int64_t end) {
      Tally done;
      for (int64_t head = begin; head < end; ++head) {
        cache_.put(head, length(), k + head * dim, v + head * dim);
        done.moved<real>(2 * dim);
        answer(head, count, q + head * rows * dim,
               static_cast<real*>(block.data()) + head * work_reals(), out + head * rows * dim,
               done);
      }
    });
  }

  int64_t work_reals() const { return padded_reals(group() * (head_dim() + kPanel)); }

  void answer(int64_t head, int64_t count, const real* q, real* work, real* out,
              Tally& done) const {
    const int64_t dim = head_dim(), rows = group();
    const real scale =
        static_cast<real>(1 / std::sqrt(static_cast<double>(dim)) / static_cast<double>(count));
    real *const weights = work, *const queries = work + rows * kPanel;
    for (int64_t i = 0; i < rows * dim; ++i) queries[i] = scale * q[i];
    std::fill_n(out, rows * dim, real(0));
    for (int64_t first = 0; first < count; first += kPanel) {
      const int64_t keys = std::min(kPanel, count - first);
      product(rows, keys, dim, {queries, dim},
              {cache_.panel(head, first), cache_.panel_width(first)}, weights, kPanel);
      for (int64_t r = 0; r < rows; ++r) {
        real* const row = weights + r * kPanel;
        for (int64_t j = 0; j < keys; ++j) row[j] = row[j] < 0 ? real(0) : row[j];
      }
      add_product(rows, dim, keys, {weights, kPanel}, {cache_.values(head, first), dim}, out, dim);
      done.multiply_adds(2 * rows * keys * dim);
      done.moved<real>(2 * keys * dim);
    }
  }

  int64_t do_state_bytes() const override { return cache_.bytes(); }
  double do_step_flops() const override {
    return 4 * static_cast<double>(heads() * group() * head_dim() * (length() + 1));
  }
  double do_step_bytes() const override {  // the cache read, one position of it written
    return 2 * static_cast<double>(sizeof(real)) *
           static_cast<double>(heads() * head_dim() * (length() + 2));
  }

  PanelCache cache_;
};

}  // namespace

std::unique_ptr<Decoder> relu_decoder(const Shape& position, int64_t capacity) {
  return std::make_unique<ReluDecoder>(position, capacity);
}

}  // namespace attn
