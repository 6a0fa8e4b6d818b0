// The window of each batch entry is contiguous; its last row is for the next position. A step
// shifts the window by one row. See window_decoder.h.
#include "variants/convolution/window_decoder.h"

#include <algorithm>

#include "core/base/counters.h"
#include "core/simd/product.h"
#include "core/simd/row_ops.h"

namespace attn {
namespace {

class WindowDecoder final : public MixerDecoder {
 public:
  WindowDecoder(const Shape& position, int64_t capacity, int64_t kernel,
                std::vector<WindowLayer> layers)
      : MixerDecoder(position, capacity),
        kernel_(kernel),
        layers_(std::move(layers)),
        windows_(Tensor::zeros({batch(), kernel * width()})) {
    for (size_t i = 0; i + 1 < layers_.size(); ++i)
      hidden_.emplace_back(Shape{batch(), layers_[i].weight.dim(-1)});
  }

 private:
  void do_next(const real* x, real* out) override {
    const int64_t d = width(), row = kernel_ * d;
    for (int64_t b = 0; b < batch(); ++b)
      std::copy_n(x + b * d, d, windows_.data() + b * row + row - d);
    Tally done;
    if (out) answer(out, done);
    for (int64_t b = 0; b < batch(); ++b) {
      real* const window = windows_.data() + b * row;
      std::copy(window + d, window + row, window);
      done.moved<real>(2 * (row - d));
    }
  }

  void answer(real* out, Tally& done) const {
    const real* from = windows_.data();
    for (size_t i = 0; i < layers_.size(); ++i) {
      const auto& [weight, bias] = layers_[i];
      const bool last = i + 1 == layers_.size();
      const int64_t cols = weight.dim(-1), depth = weight.size() / cols;
      real* const to = last ? out : hidden_[i].data();
      product(batch(), cols, depth, {from, depth}, {weight.data(), cols}, to, cols);
      done.multiply_adds(batch() * cols * depth);
      done.moved<real>(cols * depth);
      for (int64_t j = 0; bias.defined() && j < batch() * cols; ++j) to[j] += bias[j % cols];
      if (!last) tanh_row(batch() * cols, to, to);
      from = to;
    }
  }

  int64_t do_state_bytes() const override {
    return static_cast<int64_t>(sizeof(real)) * batch() * (kernel_ - 1) * width();
  }
  double do_step_flops() const override {
    double flops = 0;
    for (const WindowLayer& layer : layers_)
      flops += 2 * static_cast<double>(batch() * layer.weight.size());
    return flops;
  }
  double do_step_bytes() const override {
    double bytes = 2 * static_cast<double>(do_state_bytes());
    for (const WindowLayer& layer : layers_)
      bytes += sizeof(real) * static_cast<double>(layer.weight.size());
    return bytes;
  }

  int64_t kernel_;
  std::vector<WindowLayer> layers_;
  Tensor windows_;              // [batch, kernel · width]; before a step all rows but the last
  std::vector<Tensor> hidden_;  // [batch, out] of each layer but the last
};

}  // namespace

std::unique_ptr<Decoder> window_decoder(const Shape& position, int64_t capacity, int64_t kernel,
                                        std::vector<WindowLayer> layers) {
  return std::make_unique<WindowDecoder>(position, capacity, kernel, std::move(layers));
}

}  // namespace attn
