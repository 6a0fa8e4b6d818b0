// expect_gradients: backward() of any differentiable function against central differences of a
// random projection of its value. Exact in the double build; the float build checks only that
// gradients exist, are finite and add up. Costs 2 forwards an element.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/autograd/var.h"

namespace attn {

using Differentiable = std::function<Var(const std::vector<Var>&)>;

struct GradientCheck {
  double step =
      1e-5;  // truncation step², rounding 1e-16/step: both below 1e-9 for functions of order 1
  double tolerance = 1e-6;  // of the largest gradient of that input, or of 1
  int64_t elements = 64;    // at most so many of each input, drawn at random
  uint64_t seed = 7;
};

// Sum of fn(inputs) · seed, in double, without a tape.
inline double projected(const Differentiable& fn, const std::vector<Var>& inputs,
                        const Tensor& seed) {
  const NoGrad guard;
  const Tensor value = fn(inputs).value();
  double total = 0;
  for (int64_t i = 0; i < value.size(); i++)
    total += static_cast<double>(value[i]) * static_cast<double>(seed[i]);
  return total;
}

// `fn` must give the same value for the same inputs every time: it makes its own Rng when it needs
// one.
inline void expect_gradients(const Differentiable& fn, const std::vector<Tensor>& inputs,
                             const GradientCheck& check = {}) {
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) leaves.emplace_back(input.clone(), true);
  const Var y = fn(leaves);
  ASSERT_TRUE(y.requires_grad());
  const Tensor seed = Tensor::normal(y.shape(), rng(check.seed, "gradient_check.seed"));
  double recorded = 0, size = 0;
  for (int64_t i = 0; i < seed.size(); i++) {
    recorded += static_cast<double>(y.value()[i]) * static_cast<double>(seed[i]);
    size += std::fabs(static_cast<double>(y.value()[i]) * static_cast<double>(seed[i]));
  }
  const double same = 100 * static_cast<double>(kEpsilon) * (1 + size);
  EXPECT_LE(std::fabs(recorded - projected(fn, leaves, seed)), same)
      << "value under NoGrad differs";
  y.backward(seed);

  for (size_t which = 0; which < leaves.size(); which++) {
    SCOPED_TRACE(::testing::Message()
                 << "input " << which << " of shape " << inputs[which].shape().str());
    const Tensor grad = leaves[which].grad();
    ASSERT_TRUE(grad.defined()) << "no gradient arrived";
    ASSERT_EQ(grad.shape(), inputs[which].shape());
    double largest = 1;
    for (const real g : grad.values()) {
      ASSERT_TRUE(std::isfinite(g));
      largest = std::max(largest, std::fabs(static_cast<double>(g)));
    }
    if (!kIsDouble) continue;
    const Tensor x = leaves[which].value();
    Rng pick = rng(check.seed, "gradient_check.elements", which);
    const bool all = x.size() <= check.elements;
    for (int64_t e = 0; e < std::min(x.size(), check.elements); e++) {
      const int64_t i = all ? e : pick.between(0, x.size() - 1);
      const real held = x[i];
      x[i] = held + static_cast<real>(check.step);
      const double above = projected(fn, leaves, seed);
      x[i] = held - static_cast<real>(check.step);
      const double below = projected(fn, leaves, seed);
      x[i] = held;
      const double expected = (above - below) / (2 * check.step);
      const double got = static_cast<double>(grad[i]);
      if (!(std::fabs(got - expected) <= check.tolerance * largest)) {
        ADD_FAILURE() << "element " << i << ": backward gives " << got << ", differences "
                      << expected;
        break;
      }
    }
  }
  // A second pass adds the same again.
  std::vector<Tensor> once;
  for (const Var& leaf : leaves) once.push_back(leaf.grad().clone());
  fn(leaves).backward(seed);
  for (size_t which = 0; which < leaves.size(); which++)
    for (int64_t i = 0; i < once[which].size(); i++) {
      const double twice = static_cast<double>(leaves[which].grad()[i]),
                   g = static_cast<double>(once[which][i]);
      const double close = 1000 * static_cast<double>(kEpsilon) * (1 + std::fabs(g));
      if (!(std::fabs(twice - 2 * g) <= close)) {
        ADD_FAILURE() << "input " << which << " element " << i << ": " << g << " became " << twice
                      << " after a second backward";
        return;
      }
    }
}

// N(0, 1) numbers, the same for the same `index`.
inline Tensor random_tensor(Shape shape, uint64_t index, double scale = 1) {
  return Tensor::normal(shape, rng(11, "random_tensor", index), scale);
}

}  // namespace attn
