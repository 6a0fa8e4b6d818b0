// Decoders that divide queries and keys, or answers, by their size; see row_scale.h. O(dim) a row
// beside the inner decoder.
#include <algorithm>
#include <utility>

#include "core/simd/rows.h"
#include "variants/normalisers/handing_decoder.h"
#include "variants/normalisers/row_gain.h"
#include "variants/normalisers/row_scale.h"

namespace attn {
namespace {

class ScaledDecoder final : public HandingDecoder {
 public:
  ScaledDecoder(const Shape& position, std::unique_ptr<Decoder> inner, const QueryKeyScale& scale)
      : HandingDecoder(position, std::move(inner)),
        scale_(scale),
        query_gain_(scale.query_gain),
        key_gain_(scale.key_gain) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override {
    const Tensor keys(k.shape());
    const int64_t dim = head_dim();
    over_range(k.size() / dim, dim, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        scale_row(scale_.scale, key_gain_, 0, dim, 1, k.data() + row * dim,
                  keys.data() + row * dim);
    });
    inner().extend(keys, v);
  }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t dim = head_dim();
    for (int64_t row = 0; row < heads() * group(); ++row)
      scale_row(scale_.scale, query_gain_, row % query_heads(), dim, scale_.logits, q + row * dim,
                q_.data() + row * dim);
    for (int64_t row = 0; row < heads(); ++row)
      scale_row(scale_.scale, key_gain_, 0, dim, 1, k + row * dim, k_.data() + row * dim);
    std::copy_n(v, v_.size(), v_.data());
    inner().step(q_, k_, v_, out_);
    std::copy_n(out_.data(), out_.size(), out);
  }

  QueryKeyScale scale_;
  Gain query_gain_, key_gain_;
};

class NormedDecoder final : public HandingDecoder {
 public:
  NormedDecoder(const Shape& position, std::unique_ptr<Decoder> inner, const RowScale& scale,
                const Tensor& gain, double factor)
      : HandingDecoder(position, std::move(inner)), scale_(scale), gain_(gain), factor_(factor) {}

 private:
  void do_extend(const Tensor& k, const Tensor& v) override { inner().extend(k, v); }

  void do_step(const real* q, const real* k, const real* v, real* out) override {
    answer(q, k, v);
    const int64_t dim = head_dim();
    for (int64_t row = 0; row < heads() * group(); ++row)
      scale_row(scale_, gain_, 0, dim, factor_, out_.data() + row * dim, out + row * dim);
  }

  RowScale scale_;
  Gain gain_;
  double factor_;
};

}  // namespace

std::unique_ptr<Decoder> scaled_decoder(const Shape& position, std::unique_ptr<Decoder> inner,
                                        const QueryKeyScale& scale) {
  return std::make_unique<ScaledDecoder>(position, std::move(inner), scale);
}

std::unique_ptr<Decoder> normed_decoder(const Shape& position, std::unique_ptr<Decoder> inner,
                                        const RowScale& scale, const Tensor& gain, double factor) {
  return std::make_unique<NormedDecoder>(position, std::move(inner), scale, gain, factor);
}

}  // namespace attn
