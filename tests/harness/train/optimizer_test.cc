// AdamW against the algorithm written out in double, one number at a time; clipping and the
// schedule by hand-computed values.
#include "harness/train/optimizer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "core/ops/ops.h"

namespace attn::optimizer_test {
namespace {

// One parameter of the reference: value and both moments.
struct Number {
  double value = 0, first = 0, second = 0;
};

void give_gradient(const Var& parameter, const Tensor& gradient) {
  sum(multiply(parameter, Var(gradient))).backward();
}

TEST(AdamW, EqualsTheAlgorithmWrittenOut) {
  const AdamWConfig config{
      .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.2, .clip = 1.5};
  const Var matrix(Tensor::normal({3, 5}, rng(1, "matrix")), true),
      vector(Tensor::normal({4}, rng(1, "vector")), true);
  const std::array<Var, 2> parameters = {matrix, vector};
  std::vector<std::vector<Number>> expected(2);
  for (size_t p = 0; p < 2; ++p)
    for (const real x : parameters[p].value().values())
      expected[p].push_back({static_cast<double>(x)});

  AdamW optimizer({matrix, vector}, config);
  for (int step = 1; step <= 30; ++step) {
    const double rate = 0.1 / step;
    // Small gradients at even steps, so that clipping is off there and on at the odd ones.
    const double size = step % 2 ? 3 : 0.05;
    const std::array<Tensor, 2> gradients = {
        Tensor::normal({3, 5}, rng(2, "matrix", static_cast<uint64_t>(step)), size),
        Tensor::normal({4}, rng(2, "vector", static_cast<uint64_t>(step)), size)};
    double squares = 0;
    for (const Tensor& gradient : gradients)
      for (const real g : gradient.values())
        squares += static_cast<double>(g) * static_cast<double>(g);
    const double norm = std::sqrt(squares), factor = std::min(1.0, config.clip / norm);
    for (size_t p = 0; p < 2; ++p)
      for (size_t i = 0; i < expected[p].size(); ++i) {
        Number& n = expected[p][i];
        const double g = factor * static_cast<double>(gradients[p].values()[i]);
        n.first = config.beta1 * n.first + (1 - config.beta1) * g;
        n.second = config.beta2 * n.second + (1 - config.beta2) * g * g;
        const double m = n.first / (1 - std::pow(config.beta1, step)),
                     v = n.second / (1 - std::pow(config.beta2, step));
        const double decay = p == 0 ? config.weight_decay * n.value : 0;
        n.value -= rate * (m / (std::sqrt(v) + config.epsilon) + decay);
      }
    give_gradient(matrix, gradients[0]);
    give_gradient(vector, gradients[1]);
    EXPECT_NEAR(optimizer.step(rate), norm, 1e-4 * norm);
    // Rounding of each of the `step` updates so far: a few units in the last place of numbers of
    // size 1.
    for (size_t p = 0; p < 2; ++p)
      for (size_t i = 0; i < expected[p].size(); ++i)
        EXPECT_NEAR(static_cast<double>(parameters[p].value().values()[i]), expected[p][i].value,
                    8e-7 * step)
            << step;
  }
}

TEST(AdamW, ClearsGradientsAndLeavesUntouchedParametersAlone) {
  const Var reached(Tensor::full({2, 2}, 1), true), unreached(Tensor::full({2, 2}, 1), true);
  AdamW optimizer({reached, unreached}, {.weight_decay = 0.5});
  give_gradient(reached, Tensor::full({2, 2}, 1));
  optimizer.step(0.1);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(reached.grad()[i], 0);
    EXPECT_LT(reached.value()[i], 1);
    EXPECT_EQ(unreached.value()[i], 1);
  }
}

TEST(AdamW, ChangesNothingWhenAGradientIsNotFinite) {
  const Var parameter(Tensor::full({2}, 1), true);
  AdamW optimizer({parameter}, {});
  const std::array<double, 2> values = {1, std::nan("")};
  give_gradient(parameter, Tensor::of({2}, values));
  EXPECT_FALSE(std::isfinite(optimizer.step(0.1)));
  EXPECT_EQ(parameter.value()[0], 1);
  EXPECT_EQ(parameter.value()[1], 1);
}

TEST(LearningRate, RisesLinearlyAndFallsAlongACosineToZero) {
  EXPECT_DOUBLE_EQ(learning_rate(0, 110, 10, 2), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(4, 110, 10, 2), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(9, 110, 10, 2), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(10, 110, 10, 2), 2.0);
  EXPECT_NEAR(learning_rate(35, 110, 10, 2), 1 + std::sqrt(0.5), 1e-12);
  EXPECT_NEAR(learning_rate(60, 110, 10, 2), 1.0, 1e-12);
  EXPECT_NEAR(learning_rate(110, 110, 10, 2), 0.0, 1e-12);
  EXPECT_DOUBLE_EQ(learning_rate(0, 100, 0, 2), 2.0);
  EXPECT_GT(learning_rate(3, 4, 100, 2), 0);  // a run shorter than its warm-up
}

}  // namespace
}  // namespace attn::optimizer_test
