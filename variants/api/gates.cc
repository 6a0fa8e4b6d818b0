// Sizes and random values of gates; see gates.h.
#include "variants/api/gates.h"

namespace attn {

int64_t projection_weights(const GateInput& gate, int64_t in, int64_t heads) {
  const int64_t out = heads * gate.width;
  return gate.rank > 0 ? gate.rank * (in + out) : in * out;
}

int64_t total_width(const std::vector<GateInput>& gates) {
  int64_t width = 0;
  for (const GateInput& gate : gates) width += gate.width;
  return width;
}

std::vector<Tensor> random_gates(const std::vector<GateInput>& gates, int64_t batch, int64_t heads,
                                 int64_t len, uint64_t seed, double scale, uint64_t index) {
  std::vector<Tensor> all;
  for (const GateInput& gate : gates) {
    const Shape shape{batch, heads, len, gate.width};
    const Tensor x = Tensor::normal(shape, rng(seed, "gate " + gate.name, index), scale);
    for (int64_t i = 0; !gate.bias.empty() && i < x.size(); ++i) {
      const int64_t head = i / gate.width / len % heads, channel = i % gate.width;
      x[i] += static_cast<real>(gate.bias[static_cast<size_t>(head * gate.width + channel)]);
    }
    all.push_back(x);
  }
  return all;
}

std::vector<Var> leaves_of(const std::vector<Tensor>& tensors, bool requires_grad) {
  std::vector<Var> vars;
  vars.reserve(tensors.size());
  for (const Tensor& tensor : tensors) vars.emplace_back(tensor, requires_grad);
  return vars;
}

std::vector<Tensor> values_of(std::span<const Var> vars) {
  std::vector<Tensor> values;
  values.reserve(vars.size());
  for (const Var& var : vars) values.push_back(var.value());
  return values;
}

}  // namespace attn
