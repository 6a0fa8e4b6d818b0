// window_mlp: a network of one hidden layer over the rows within `window` of each position, side by
// side: O_i = c + U·tanh(b + H·[x_{i-w}; …; x_{i+w}]), the same at every position. Bengio et al.
// 2003, JMLR 3, eq. 1, without direct connections. Without the hidden layer it would be `conv`.
// Time 2·n·((2w+1)·d·hidden + hidden·d), causal w+1 rows; memory n·(hidden + d).
#include <algorithm>
#include <cmath>

#include "variants/kernels/window_decoder.h"
#include "variants/kernels/window_product.h"
#include "variants/mixer.h"

namespace attn::variants {
namespace {

class WindowMlp final : public Mixer {
 public:
  explicit WindowMlp(const AttentionConfig& config)
      : Mixer(config),
        before_(params().integer("window")),
        kernel_(config.causal ? before_ + 1 : 2 * before_ + 1),
        hidden_(params().integer("hidden") > 0 ? params().integer("hidden") : width()),
        h_(draw("hidden", {kernel_, width(), hidden_})),
        u_(draw("output", {hidden_, width()})),
        b_(Tensor::zeros({hidden_}), true),
        c_(Tensor::zeros({width()}), true) {}

 private:
  Var draw(const char* name, Shape shape) const {
    const auto rows = static_cast<double>(shape.size() / shape[-1]);
    return Var(Tensor::normal(shape, rng(config().seed, name), 1 / std::sqrt(rows)), true);
  }
  Var do_mix(const Var& x, const Mask& mask) const override {
    const Var hidden = window_product(  // [batch, len, hidden]
        x, h_, b_,
        {.kernel = kernel_, .before = before_, .lengths = mask.kv_lengths, .tanh = true});
    return window_product(hidden, u_, c_, {.lengths = mask.kv_lengths});
  }
  Cost do_cost(const AttentionShape& s) const override {
    const Cost first = window_product_cost(s.batch, s.kv_len, width(), hidden_, kernel_),
               second = window_product_cost(s.batch, s.kv_len, hidden_, width(), 1);
    const double hidden = sizeof(real) * static_cast<double>(s.batch * s.kv_len * hidden_);
    return {.flops = first.flops + second.flops,
            .bytes = first.bytes + second.bytes,
            .peak_bytes = std::max(first.peak_bytes, hidden + second.peak_bytes),
            .state_bytes = window_state_bytes(s.batch, width(), kernel_)};
  }
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const override {
    return window_decoder(position, capacity, kernel_,
                          {{h_.value(), b_.value()}, {u_.value(), c_.value()}});
  }
  std::vector<Weight> do_weights() const override {
    return {{"hidden", h_}, {"hidden_bias", b_}, {"output", u_}, {"output_bias", c_}};
  }

  int64_t before_, kernel_, hidden_;
  Var h_, u_, b_, c_;  // [kernel, width, hidden], [hidden, width], [hidden], [width]
};

}  // namespace

VariantInfo window_mlp() {
  return {.name = "window_mlp",
          .family = "convolution",
          .summary = "a network of one hidden layer over a window, without queries and keys",
          .paper = "Bengio et al. 2003, JMLR 3, eq. 1, without direct connections",
          .cost_formula =
              "2·n·h·d·(2w+2) FLOPs for h hidden units and a width of d = heads · "
              "head_dim, causal 2·n·h·d·(w+2); memory n·(h + d)",
          .traits = {.causal = true, .linear_time = true, .decode = true, .mixer = true},
          .params = {{"window", 2,
                      "positions seen on each side of an output's own (causal: before it)", 0},
                     {"hidden", 0, "units of the hidden layer; 0: as many as the width", 0}},
          .make = make_as<WindowMlp>,
          .limit = [](const AttentionShape&) { return std::nullopt; },
          .skip_reason = {}};
}

}  // namespace attn::variants
