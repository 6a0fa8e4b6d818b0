// base_conv: a gated short convolution, y = (silu(conv(x·W_c + b_c)) ⊙ (x·W_g + b_g))·W_o + b_o
// with a causal convolution of `kernel` taps in each channel: Based's third kind of layer. Arora et
// al. 2024, arXiv:2402.18668, section 4 and appendix. Time 6·n·expansion·d², memory
// 4·n·expansion·d.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/counters.h"
#include "core/ops/ops.h"
#include "core/ops/ops_block.h"
#include "core/simd/product.h"
#include "variants/api/mixer.h"
#include "variants/api/variant_info.h"
#include "variants/reference/units.h"

namespace attn::variants {
namespace {

struct BaseConvWeights {
  Var in, in_bias, gate, gate_bias, taps, out, out_bias;

  // `convolved` [batch, len, inner] of x·W_c + b_c.
  Var output(const Var& x, const Var& convolved) const {
    const Var gated = multiply(convolved, linear(x, gate, gate_bias));
    return linear(gated, out, out_bias);
  }
  double products() const {  // multiply-adds of a position
    return static_cast<double>(in.value().size() + gate.value().size() + out.value().size());
  }
};

// The state is the last kernel - 1 rows that the convolution reads.
class BaseConvDecoder final : public MixerDecoder {
 public:
  BaseConvDecoder(const Shape& position, int64_t capacity, BaseConvWeights weights)
      : MixerDecoder(position, capacity),
        weights_(std::move(weights)),
        held_(Tensor::zeros({batch(), kernel(), weights_.taps.dim(1)})) {}

 private:
  int64_t kernel() const { return weights_.taps.dim(0); }

  // The last of the held rows is of the position at hand, and stays until the next one is known: a
  // step that is taken back is replaced.
  void do_next(const real* x, real* out) override {
    const NoGrad no_grad;
    if (position() > kept_) move_rows();
    kept_ = position();
    count_bytes(do_step_bytes());
    const Tensor row({batch(), 1, width()});
    std::copy_n(x, row.size(), row.data());
    const Tensor read = linear(Var(row), weights_.in, weights_.in_bias).value();
    const int64_t wide = held_.dim(2), last = kernel() - 1;
    for (int64_t b = 0; b < batch(); ++b)
      std::copy_n(read.data() + b * wide, wide, held_.data() + (b * kernel() + last) * wide);
    if (!out) return;
    const Var mixed = short_convolution(Var(held_), weights_.taps, {}, true);
    const Tensor found = weights_.output(Var(row), slice(mixed, 1, last, last + 1)).value();
    std::copy_n(found.data(), found.size(), out);
  }
  void move_rows() {
    const int64_t wide = held_.dim(2);
    for (int64_t b = 0; b < batch(); ++b) {
      real* const first = held_.data() + b * kernel() * wide;
      std::copy(first + wide, first + kernel() * wide, first);
    }
  }

  int64_t do_state_bytes() const override {
    return held_.size() * static_cast<int64_t>(sizeof(real));
  }
  double do_step_flops() const override {
    return 2 * static_cast<double>(batch()) * weights_.products();
  }
  double do_step_bytes() const override {
    return sizeof(real) * weights_.products() + 2 * static_cast<double>(do_state_bytes());
  }

  BaseConvWeights weights_;
  Tensor held_;       // [batch, kernel, inner]
  int64_t kept_ = 0;  // the position of the last held row
};

class BaseConv final : public Mixer {
 public:
  explicit BaseConv(const AttentionConfig& config)
      : Mixer(config), inner_(params().integer("expansion") * width()) {
    const auto zeros = [&](const char* name, int64_t count) {
      return weight(name, Tensor::zeros({count}));
    };
    const int64_t kernel = params().integer("kernel");
    weights_.in = glorot_weight("in", {width(), inner_});
    weights_.in_bias = zeros("in.bias", inner_);
    weights_.gate = glorot_weight("gate", {width(), inner_});
    weights_.gate_bias = zeros("gate.bias", inner_);
    // As wide as numbers uniform in ±1/√kernel, with which the code starts.
    weights_.taps =
        normal_weight("taps", {kernel, inner_}, 1 / std::sqrt(3 * static_cast<double>(kernel)));
    weights_.out = glorot_weight("out", {inner_, width()});
    weights_.out_bias = zeros("out.bias", width());
  }

 private:
  Var do_mix(const Var& x, const Mask& mask) const override {
    const Var from = zero_padding(x, mask.kv_lengths);
    const Var mixed =
        short_convolution(linear(from, weights_.in, weights_.in_bias), weights_.taps, {}, true);
    return weights_.output(from, mixed);
  }

  // The convolution itself is no product, and counts none.
  Cost do_cost(const AttentionShape& s) const override {
    const auto rows = static_cast<double>(s.batch * s.kv_len), d = static_cast<double>(width()),
               inner = static_cast<double>(inner_);
    Cost cost;
    cost.flops = 2 * rows * weights_.products();
    cost.bytes = sizeof(real) * (rows * (4 * d + 7 * inner) + weights_.products());
    // The convolved rows beside the gate and their product; or beside that, the output and its
    // packed weight.
    cost.peak_bytes =
        sizeof(real) *
        std::max(3 * inner * rows,
                 rows * (2 * inner + d) + static_cast<double>(packed_reals(inner_, width())));
    cost.state_bytes = sizeof(real) * static_cast<double>(s.batch) *
                       static_cast<double>(weights_.taps.value().size());
    return cost;
  }

  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return std::make_unique<BaseConvDecoder>(position, capacity, weights_);
  }

  int64_t inner_;
  BaseConvWeights weights_;
};

// One position after the other; weights as the class makes them.
oracle::Array base_conv_reference(const ReferenceInputs& x) {
  const auto& w = x.weights;
  oracle::Array rows = oracle::merged(x.v);
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t t = x.valid(b); t < rows.len; ++t) std::fill_n(rows.line(b, 0, t), rows.dim, 0.0);
  const auto same = [](double value) { return value; };
  const int64_t kernel = w[4].len;
  oracle::Array out(rows.batch, 1, rows.len, rows.dim);
  for (int64_t b = 0; b < rows.batch; ++b)
    for (int64_t t = 0; t < rows.len; ++t) {
      std::vector<double> mixed(static_cast<size_t>(w[4].dim));
      for (int64_t back = 0; back < kernel && back <= t; ++back) {
        const auto read = oracle::through(rows.row(b, 0, t - back), w[0], &w[1], same);
        for (size_t c = 0; c < mixed.size(); ++c)
          mixed[c] += read[c] * w[4].at(0, 0, kernel - 1 - back, static_cast<int64_t>(c));
      }
      const auto gate = oracle::through(rows.row(b, 0, t), w[2], &w[3], same);
      for (size_t c = 0; c < mixed.size(); ++c) mixed[c] = oracle::silu(mixed[c]) * gate[c];
      const auto y = oracle::through(mixed, w[5], &w[6], same);
      std::copy(y.begin(), y.end(), out.line(b, 0, t));
    }
  return oracle::split(out, x.v.heads);
}

}  // namespace

VariantInfo base_conv() {
  return {
      .name = "base_conv",
      .family = "convolution",
      .summary = "a gated short convolution, Based's layer beside attention",
      .paper = "Arora et al. 2024, arXiv:2402.18668, section 4",
      .cost_formula =
          "6·n·expansion·d² FLOPs of its three projections for a width of d = heads · head_dim; "
          "memory 3·n·expansion·d",
      .traits =
          {.causal = true, .linear_time = true, .decode = true, .mixer = true, .nonlinear = true},
      .params = {{"kernel", 3, "positions that the convolution sees, its own the last", 1, 64},
                 {"expansion", 2, "channels of the convolution and of the gate, over the width", 1,
                  64}},
      .make = make_as<BaseConv>,
      .reference = base_conv_reference,
      .always_causal = [](const Params&) { return true; },
      .notes = {"Defaults of HazyResearch/based, based/models/mixers/convolution.py (BaseConv with "
                "expand_proj=4, two halves of 2·d each, biases of projections and none of the "
                "convolution). The stack `based` has it in three layers of five.",
                "The layer as a whole: it makes its projections itself. Its convolution is causal "
                "without a causal mask too.",
                "taps [kernel, expansion·d], the earliest position first."}};
}

}  // namespace attn::variants
