// truncated: softmax attention to the keys within `window` positions of each query (causal: before
// it). Sliding window as in Beltagy et al. 2020, arXiv:2004.05150, section 3.1, without dilation or
// global tokens. Time 4·n·(2w+1)·d, memory n·d. Query i sits at key position i + kv_len - q_len,
// causal or not: two sequences of different length are aligned at the end.
#include <algorithm>

#include "variants/api/distance_bias.h"
#include "variants/api/variant_info.h"
#include "variants/softmax/softmax.h"

namespace attn::variants {
namespace {

class Truncated final : public Attention, public DistanceBiased {
 public:
  explicit Truncated(const AttentionConfig& config)
      : Attention(config), window_(params().integer("window")) {}

  Var biased_forward(const Var& q, const Var& k, const Var& v, const Mask& mask,
                     const Var& table) const override {
    check_mask(mask, q.dim(0), q.dim(2), k.dim(2));
    return distance_softmax_attention(q, k, v, table, options_of(mask));
  }
  std::unique_ptr<Decoder> biased_decoder(const Shape& position, int64_t capacity,
                                          const Tensor& distances) const override {
    return distance_softmax_decoder(position, capacity, window_, distances);
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask));
  }
  BFloat16Tensor do_bfloat16_forward(const BFloat16Tensor& q, const BFloat16Tensor& k,
                                     const BFloat16Tensor& v, const Mask& mask) const override {
    return softmax_attention(q, k, v, options_of(mask));
  }
  Cost do_cost(const AttentionShape& shape) const override {
    return softmax_cost(shape, {.window = window_});
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return softmax_decoder(position, capacity, window_);
  }
  std::unique_ptr<Decoder> do_bfloat16_decoder(const Shape& position,
                                               int64_t capacity) const override {
    return bfloat16_softmax_decoder(position, capacity, window_);
  }
  std::unique_ptr<Decoder> do_cached_decoder(const Shape& position, int64_t capacity,
                                             CacheType cache) const override {
    return typed_softmax_decoder(position, capacity, cache, {.window = window_});
  }

  SoftmaxOptions options_of(const Mask& mask) const {
    return {.causal = mask.causal, .kv_lengths = mask.kv_lengths, .window = window_};
  }

  int64_t window_;
};

}  // namespace

VariantInfo truncated() {
  return {
      .name = "truncated",
      .family = "pattern",
      .summary = "softmax attention within a sliding window of keys",
      .paper = "Beltagy et al. 2020, arXiv:2004.05150, section 3.1 (window only)",
      .cost_formula =
          "4·n·(2w+1)·d FLOPs, causal 4·n·(w+1)·d, and 20·n·d at the edges of strips of 6 queries; "
          "memory n·d",
      .traits = {.causal = true,
                 .cross = true,
                 .linear_time = true,
                 .convex = true,
                 .decode = true,
                 .typed_cache = true,
                 .bfloat16 = true,
                 .distance_bias = true},
      .params = {{"window", 64,
                  "keys seen on each side of a query, besides its own (causal: before it)"}},
      .make = make_as<Truncated>,
      .reference =
          [](const ReferenceInputs& x) {
            return softmax_where(x, [window = x.params().integer("window")](int64_t i, int64_t j) {
              return i - window <= j && j <= i + window;
            });
          },
      .limit = limit_at_length("window")};
}

}  // namespace attn::variants
