// Gates: what an attention reads at each position beside query, key and value, such as the decay of
// a state or the strength of a write. A gate is given as it is projected ("raw"): the variant
// applies its own sigmoid or softplus, so that the gradient of that belongs to the variant.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

// One gate, [batch, heads, len, width]. A multi-head layer computes it from its input x [batch,
// len, in] as x·W + bias with W [in, heads · width], or through `rank` numbers as x·W₁·W₂ + bias.
// Each query head has its own gates, also where query heads share keys and values.
struct GateInput {
  std::string name;   // of `apply --input` and of the layer's weights
  std::string help;   // one line for `info`
  int64_t width = 1;  // numbers for each head: 1 for a scalar, head_dim for one number a channel
  int64_t rank = 0;   // of a projection in two steps; 0: one matrix
  std::vector<double> bias = {};  // start of the learned bias, [heads · width]; empty: no bias
  // How many of its numbers are read where a sequence has `len` positions; empty: all.
  std::function<int64_t(int64_t len)> read = {};
};

constexpr size_t kMostGates = 4;  // of one attention

// Gates held in place, so that a pass allocates nothing for them.
class GateVars {
 public:
  void push_back(Var gate) { vars_[size_++] = std::move(gate); }
  operator std::span<const Var>() const { return {vars_.data(), size_}; }

 private:
  std::array<Var, kMostGates> vars_;
  size_t size_ = 0;
};

// Multiply-adds for one position, without the bias; also the number of weights in the matrices.
int64_t projection_weights(const GateInput& gate, int64_t in, int64_t heads);

// Numbers for each position and head.
int64_t total_width(const std::vector<GateInput>& gates);

// Gates as a layer projects them at its start: the start of the bias plus N(0, scale²). `index`
// numbers the parts of a sequence that is drawn in parts.
std::vector<Tensor> random_gates(const std::vector<GateInput>& gates, int64_t batch, int64_t heads,
                                 int64_t len, uint64_t seed, double scale = 1, uint64_t index = 0);

// A leaf for each tensor.
std::vector<Var> leaves_of(const std::vector<Tensor>& tensors, bool requires_grad = false);
std::vector<Tensor> values_of(std::span<const Var> vars);

}  // namespace attn
