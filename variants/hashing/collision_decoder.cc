// Decoding by tables of sums, one for each sign hash; see collision_attention.h. Parallel over
// heads.
#include <algorithm>

#include "core/base/counters.h"
#include "core/base/memory.h"
#include "core/simd/rows.h"
#include "variants/hashing/collision_attention.h"
#include "variants/hashing/sign_codes.h"

namespace attn {
namespace {

class CollisionDecoder final : public Decoder {
 public:
  CollisionDecoder(const Shape& position, int64_t capacity, const Tensor& planes,
                   const CollisionOptions& options)
      : Decoder(position, capacity),
        planes_(planes),
        options_(options),
        hashes_(planes.dim(1) / options.bits),
        sums_(Tensor::zeros({heads(), hashes_, int64_t{1} << options.bits, head_dim()})),
        codes_(static_cast<size_t>(heads() * hashes_) * sizeof(int32_t), Purpose::workspace) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    over_range(heads(), len * planes_.dim(1) * dim, [&](int64_t begin, int64_t end) {
      for (int64_t head = begin; head < end; ++head)
        for (int64_t row = head * len; row < (head + 1) * len; ++row)
          insert(head, k.data() + row * dim, v.data() + row * dim);
    });
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim();
    over_range(heads(), 2 * planes_.dim(1) * dim, [&](int64_t begin, int64_t end) {
      Tally done;
      for (int64_t head = begin; head < end; ++head) {
        insert(head, k + head * dim, v + head * dim);
        real* const to = out + head * dim;
        std::fill_n(to, dim, real(0));
        visit(head, q + head * dim, [&](const real* sum) {
          for (int64_t c = 0; c < dim; ++c) to[c] += sum[c];
        });
        for (int64_t c = 0; c < dim; ++c) to[c] /= static_cast<real>(hashes_);
        done.multiply_adds(2 * planes_.dim(1) * dim);
        done.moved<real>((3 * hashes_ + planes_.dim(1)) * dim);
      }
    });
  }

  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * sums_.size();
  }
  double do_step_flops() const override {
    return 4 * static_cast<double>(heads() * planes_.dim(1) * head_dim());
  }
  double do_step_bytes() const override {
    return sizeof(real) *
           static_cast<double>(heads() * (3 * hashes_ + planes_.dim(1)) * head_dim());
  }

  // use(the sum of its bucket) for each hash of a row
  template <class Use>
  void visit(int64_t head, const real* row, const Use& use) const {
    const SignHashes hashes(planes_, head % planes_.dim(0), options_.bits, options_.longest);
    int32_t* const codes = static_cast<int32_t*>(codes_.data()) + head * hashes_;
    hashes.row_codes(row, codes);
    for (int64_t h = 0; h < hashes_; ++h)
      use(sums_.data() + ((head * hashes_ + h) * hashes.buckets() + codes[h]) * head_dim());
  }
  void insert(int64_t head, const real* k, const real* v) const {
    visit(head, k, [&](real* sum) {
      for (int64_t c = 0; c < head_dim(); ++c) sum[c] += v[c];
    });
  }

  Tensor planes_;  // [heads, hashes·bits, dim]
  CollisionOptions options_;
  int64_t hashes_;
  Tensor sums_;  // [batch·heads, hashes, buckets, dim]
  Block codes_;  // [batch·heads, hashes]
};

}  // namespace

std::unique_ptr<Decoder> collision_decoder(const Shape& position, int64_t capacity,
                                           const Tensor& planes, const CollisionOptions& options) {
  if (position[2] != 1) return nullptr;
  return std::make_unique<CollisionDecoder>(position, capacity, planes, options);
}

}  // namespace attn
