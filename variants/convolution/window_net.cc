// A sequence of window layers; see window_net.h.
#include "variants/convolution/window_net.h"

#include <algorithm>
#include <cmath>

#include "variants/convolution/window_decoder.h"

namespace attn {

WindowNet::WindowNet(const AttentionConfig& config, int64_t kernel, int64_t before)
    : Mixer(config), kernel_(kernel), before_(before) {}

void WindowNet::add_layer(int64_t out, const std::string& weight_name,
                          const std::string& bias_name) {
  const bool first = layers_.empty();
  const int64_t kernel = first ? kernel_ : 1, in = first ? width() : layers_.back().weight.dim(2);
  const double deviation = 1 / std::sqrt(static_cast<double>(kernel * in));
  const Var matrix = normal_weight(weight_name, {kernel, in, out}, deviation);
  layers_.push_back({matrix, weight(bias_name, Tensor::zeros({out}))});
}

Var WindowNet::do_mix(const Var& x, const Mask& mask) const {
  Var rows = x;
  for (const Layer& layer : layers_)
    rows = window_product(rows, layer.weight, layer.bias,
                          {.kernel = layer.weight.dim(0),
                           .before = &layer == &layers_.front() ? before_ : 0,
                           .lengths = mask.kv_lengths,
                           .tanh = &layer != &layers_.back()});
  return rows;
}

Cost WindowNet::do_cost(const AttentionShape& shape) const {
  Cost all;
  double held = 0;  // the layer's input, unless it is x
  for (const Layer& layer : layers_) {
    const Shape w = layer.weight.shape();
    const Cost one = window_product_cost(shape.batch, shape.kv_len, w[1], w[2], w[0]);
    all.flops += one.flops;
    all.bytes += one.bytes;
    all.peak_bytes = std::max(all.peak_bytes, held + one.peak_bytes);
    all.state_bytes += one.state_bytes;
    held = sizeof(real) * static_cast<double>(shape.batch * shape.kv_len * w[2]);
  }
  return all;
}

std::unique_ptr<Decoder> WindowNet::do_decoder(const Shape& position, int64_t capacity) const {
  std::vector<WindowLayer> layers;
  for (const Layer& layer : layers_) layers.push_back({layer.weight.value(), layer.bias.value()});
  return window_decoder(position, capacity, kernel_, std::move(layers));
}

}  // namespace attn
