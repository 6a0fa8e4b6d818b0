// A mixer of fully connected layers with the same weights at every position. The first layer reads
// a window of rows, the others one row; tanh between them. Time 2·n·Σ kernel·in·out, memory n·(in +
// out).
#pragma once

#include <vector>

#include "variants/api/mixer.h"
#include "variants/convolution/window_product.h"

namespace attn {

class WindowNet : public Mixer {
 protected:
  // `kernel` rows of a window, `before` of them before the position's own.
  WindowNet(const AttentionConfig& config, int64_t kernel, int64_t before);
  // Adds a layer; for constructors. Initial weights have variance 1/inputs, initial biases are 0.
  // The last layer must be as wide as the input.
  void add_layer(int64_t out, const std::string& weight_name, const std::string& bias_name);

 private:
  struct Layer {
    Var weight, bias;  // [kernel, in, out], [out]
  };
  Var do_mix(const Var& x, const Mask& mask) const final;
  Cost do_cost(const AttentionShape& shape) const final;
  std::unique_ptr<Decoder> do_decoder(const Shape& position, int64_t capacity) const final;

  int64_t kernel_, before_;
  std::vector<Layer> layers_;
};

}  // namespace attn
