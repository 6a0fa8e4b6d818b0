// short_conv: y = q ⊙ conv(k ⊙ v): a causal convolution of a few taps in each channel, between two
// gates. The layer of LFM2, Liquid AI 2025, arXiv:2511.23404, section 2. Time 2·n·kernel·d, memory
// n·d.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "variants/api/variant_info.h"
#include "variants/scans/scans.h"

namespace attn::variants {
namespace {

// The state is the last rows of k ⊙ v, each in the place of its position modulo the kernel.
class ShortConvDecoder final : public Decoder {
 public:
  ShortConvDecoder(const Shape& position, int64_t capacity, Tensor taps)
      : Decoder(position, capacity),
        taps_(std::move(taps)),
        held_(Tensor::zeros({heads(), taps_.dim(1), head_dim()})) {}

 private:
  void put(int64_t head, int64_t at, const real* k, const real* v) {
    const int64_t kernel = taps_.dim(1), dim = head_dim();
    real* const to = held_.data() + (head * kernel + at % kernel) * dim;
    for (int64_t c = 0; c < dim; ++c) to[c] = k[c] * v[c];
  }
  void do_extend(const Tensor& k, const Tensor& v) override {
    const int64_t len = k.dim(2), dim = head_dim();
    for (int64_t head = 0; head < heads(); ++head)
      for (int64_t t = std::max<int64_t>(0, len - taps_.dim(1)); t < len; ++t)
        put(head, length() + t, k.data() + (head * len + t) * dim,
            v.data() + (head * len + t) * dim);
    count_bytes(2 * static_cast<double>(do_state_bytes()));
  }
  void do_step(const real* q, const real* k, const real* v, real* out) override {
    const int64_t kernel = taps_.dim(1), dim = head_dim(), at = length();
    for (int64_t head = 0; head < heads(); ++head) {
      put(head, at, k + head * dim, v + head * dim);
      real* const to = out + head * dim;
      std::fill_n(to, dim, real(0));
      for (int64_t back = 0; back < kernel && back <= at; ++back) {
        const real* const tap = taps_.data() + (head % taps_.dim(0) * kernel + back) * dim;
        const real* const row = held_.data() + (head * kernel + (at - back) % kernel) * dim;
        for (int64_t c = 0; c < dim; ++c) to[c] += tap[c] * row[c];
      }
      for (int64_t c = 0; c < dim; ++c) to[c] *= q[head * dim + c];
    }
    count_flops(do_step_flops());
    count_bytes(do_step_bytes());
  }
  int64_t do_state_bytes() const override {
    return held_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override { return 2 * static_cast<double>(held_.size()); }
  double do_step_bytes() const override { return 2 * static_cast<double>(do_state_bytes()); }

  Tensor taps_;  // [heads, kernel, head_dim], the tap of distance 0 first
  Tensor held_;  // [batch · heads, kernel, head_dim]
};

class ShortConv final : public Attention {
 public:
  explicit ShortConv(const AttentionConfig& config) : Attention(config) {
    const int64_t kernel = params().integer("kernel");
    // As wide as numbers uniform in ±1/√kernel, with which the code starts.
    taps_ = normal_weight("taps", {config.heads, kernel, config.head_dim},
                          1 / std::sqrt(3 * static_cast<double>(kernel)));
  }

 private:
  Var do_forward(const Var& q, const Var& k, const Var& v, const Mask& mask) const override {
    return multiply(convolved(k, v, mask), q);
  }

  // Of k ⊙ v, which ends here.
  Var convolved(const Var& k, const Var& v, const Mask& mask) const {
    return shift_filter(
        multiply(zero_padding(k, mask.kv_lengths), zero_padding(v, mask.kv_lengths)), taps_, {});
  }

  Cost do_cost(const AttentionShape& s) const override {
    const auto width = static_cast<double>(s.batch * s.heads * s.head_dim);
    const double numbers = sizeof(real) * width * static_cast<double>(s.kv_len);
    Cost cost;
    cost.flops = width * shift_filter_flops(s.kv_len, taps_.dim(1));
    cost.backward_flops = 2 * cost.flops;
    cost.bytes = 8 * numbers;
    cost.peak_bytes = 2 * numbers;
    cost.state_bytes = sizeof(real) * width * static_cast<double>(taps_.dim(1));
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    if (position[2] > 1) return nullptr;  // each query head has taps of its own
    return std::make_unique<ShortConvDecoder>(position, capacity, taps_.value());
  }

  Var taps_;  // [heads, kernel, head_dim], the tap of distance 0 first
};

// The sum of the kernel's positions, one after the other.
oracle::Array short_conv_reference(const ReferenceInputs& x) {
  const oracle::Array& taps = x.weights[0];
  oracle::Array out(x.q.batch, x.q.heads, x.q.len, x.q.dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h)
      for (const int64_t i : oracle::wanted_rows(x.rows, out.len))
        for (int64_t c = 0; c < out.dim; ++c) {
          double sum = 0;
          for (int64_t j = std::max<int64_t>(0, i - taps.len + 1); j <= i && j < x.valid(b); ++j)
            sum += taps.at(0, h, i - j, c) * x.k.at(b, h, j, c) * x.v.at(b, h, j, c);
          out.at(b, h, i, c) = x.q.at(b, h, i, c) * sum;
        }
  return out;
}

}  // namespace

VariantInfo short_conv() {
  return {
      .name = "short_conv",
      .family = "convolution",
      .summary = "q times a short convolution of k times v, LFM2's layer beside attention",
      .paper = "Liquid AI 2025, arXiv:2511.23404, section 2",
      .cost_formula = "2·n·kernel·d FLOPs; memory 2·n·d",
      .traits = {.causal = true, .linear_time = true, .decode = true},
      .params = {{"kernel", 3, "positions that the convolution sees, its own the last", 1, 64}},
      .make = make_as<ShortConv>,
      .reference = short_conv_reference,
      .always_causal = [](const Params&) { return true; },
      .notes = {"q, k and v stand for the layer's projections C, B and x, which a layer makes and "
                "pays for. No bias and no activation, as in LFM2, whose kernel has 3 taps "
                "(conv_L_cache).",
                "Its convolution is causal without a causal mask too.",
                "base_conv is another layer: one gate, after a convolution through silu. hyena is "
                "the same with a filter over all positions."}};
}

}  // namespace attn::variants
