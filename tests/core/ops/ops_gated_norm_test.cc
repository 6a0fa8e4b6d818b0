// Skip, norm and gate in one pass against plain loops in double, and its gradients.

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/parallel.h"
#include "core/ops/ops_gated_norm.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_gated_norm_test {
namespace {

using Norm = GatedNorm::Norm;
using Activation = GatedNorm::Activation;

constexpr double kClose = 400 * static_cast<double>(kEpsilon);
constexpr int64_t kWidth = 12;

double of(const Tensor& x, int64_t i) { return static_cast<double>(x[i]); }
double number(const Var& x, int64_t i) { return of(x.value(), i % x.value().size()); }

double activated(Activation kind, double raw) {
  const double sigma = 1 / (1 + std::exp(-raw));
  return kind == Activation::silu ? raw * sigma : sigma;
}

// One row, one step of the definition after the other.
std::array<double, kWidth> plain_row(const Tensor& x, const GatedNorm& by, int64_t row) {
  std::array<double, kWidth> y = {};
  const auto gate = [&] {
    for (int64_t j = 0; j < kWidth; ++j)
      y[static_cast<size_t>(j)] *= activated(by.activation, of(by.gate.value(), row * kWidth + j));
  };
  for (int64_t j = 0; j < kWidth; ++j) {
    double& at = y[static_cast<size_t>(j)];
    at = of(x, row * kWidth + j);
    if (by.skip.defined()) at += number(by.skip, j) * of(by.skipped.value(), row * kWidth + j);
  }
  if (by.gate.defined() && by.gate_first) gate();
  const int64_t segment = by.segment > 0 ? by.segment : kWidth;
  for (int64_t begin = 0; by.norm != Norm::none && begin < kWidth; begin += segment) {
    double mean = 0, square = 0;
    for (int64_t j = begin; j < begin + segment; ++j) mean += y[static_cast<size_t>(j)];
    mean = by.norm == Norm::layer ? mean / static_cast<double>(segment) : 0;
    for (int64_t j = begin; j < begin + segment; ++j)
      square += std::pow(y[static_cast<size_t>(j)] - mean, 2);
    const double over = std::sqrt(square / static_cast<double>(segment) + by.epsilon);
    for (int64_t j = begin; j < begin + segment; ++j) {
      double& at = y[static_cast<size_t>(j)];
      at = (at - mean) / over;
      if (by.gain.defined())
        at *= number(by.gain, by.gain.value().size() == kWidth ? j : j - begin);
      if (by.shift.defined())
        at += number(by.shift, by.shift.value().size() == kWidth ? j : j - begin);
    }
  }
  if (by.gate.defined() && !by.gate_first) gate();
  return y;
}

// Every choice that a layer can make, with inputs of its own.
template <class Check>
void for_each_choice(const Check& check) {
  for (const Norm norm : {Norm::none, Norm::rms, Norm::layer})
    for (const Activation activation : {Activation::none, Activation::silu, Activation::sigmoid})
      for (const bool gate_first : {false, true})
        for (const bool skips : {false, true})
          // Of the gain: 0 none, 1 none of segments; with one for a segment, a shift too.
          for (const int64_t numbers : {int64_t{0}, int64_t{1}, int64_t{4}, kWidth}) {
            if (norm == Norm::none && numbers > 0) continue;
            GatedNorm by{.norm = norm,
                         .segment = numbers == 0 ? 0 : 4,
                         .epsilon = 1e-2,
                         .activation = activation,
                         .gate_first = gate_first};
            const auto make = [](Shape shape, uint64_t seed) {
              return Var(random_tensor(shape, seed), true);
            };
            if (skips) by.skipped = make({2, 300, kWidth}, 1), by.skip = make({kWidth}, 2);
            if (numbers > 1) by.gain = make({numbers}, 3);
            if (numbers == 4) by.shift = make({numbers}, 4);
            if (activation != Activation::none) by.gate = make({2, 300, kWidth}, 5);
            check(by);
          }
}

TEST(OpsGatedNorm, IsItsDefinition) {
  const Tensor x = random_tensor({2, 300, kWidth}, 6);
  for_each_choice([&](const GatedNorm& by) {
    for (const int threads : {1, 2}) {
      set_threads(threads);
      const Tensor y = gated_norm(Var(x), by).value();
      for (int64_t row = 0; row < 600; row += row < 250 ? 37 : 1) {
        const auto expected = plain_row(x, by, row);
        for (int64_t j = 0; j < kWidth; ++j)
          ASSERT_NEAR(of(y, row * kWidth + j), expected[static_cast<size_t>(j)], kClose);
      }
    }
    set_threads(1);
  });
}

TEST(OpsGatedNorm, Gradients) {
  for_each_choice([](const GatedNorm& choice) {
    std::vector<Tensor> in = {random_tensor({3, kWidth}, 7)};
    if (choice.skip.defined()) {
      in.push_back(random_tensor({3, kWidth}, 8));
      in.push_back(choice.skip.value());
    }
    if (choice.gain.defined()) in.push_back(choice.gain.value());
    if (choice.shift.defined()) in.push_back(choice.shift.value());
    if (choice.gate.defined()) in.push_back(random_tensor({3, kWidth}, 9));
    expect_gradients(
        [&](const std::vector<Var>& vars) {
          GatedNorm by = choice;
          size_t next = 1;
          if (by.skip.defined()) by.skipped = vars[next++], by.skip = vars[next++];
          if (by.gain.defined()) by.gain = vars[next++];
          if (by.shift.defined()) by.shift = vars[next++];
          if (by.gate.defined()) by.gate = vars[next++];
          return gated_norm(vars[0], by);
        },
        in);
  });
}

struct NormGradients {
  Tensor x, skipped, gate, skip, gain, shift;  // undefined: not of this choice
};

// Of rows begin .. end of 600, with a gradient of 1 to 7 for each number.
NormGradients gradients_of(const GatedNorm& choice, int64_t begin, int64_t end) {
  const auto part = [&](const Tensor& rows) {
    const Tensor some({end - begin, kWidth});
    std::copy_n(rows.data() + begin * kWidth, some.size(), some.data());
    return Var(some, true);
  };
  const auto fresh = [](const Var& from) {
    return from.defined() ? Var(from.value(), true) : Var();
  };
  GatedNorm by = choice;
  by.skip = fresh(choice.skip), by.gain = fresh(choice.gain), by.shift = fresh(choice.shift);
  if (choice.skipped.defined()) by.skipped = part(choice.skipped.value());
  if (choice.gate.defined()) by.gate = part(choice.gate.value());
  const Var x = part(random_tensor({2, 300, kWidth}, 6));
  const Tensor of_y({end - begin, kWidth});
  for (int64_t i = 0; i < of_y.size(); ++i)
    of_y[i] = static_cast<real>((begin * kWidth + i) % 7 + 1);
  gated_norm(x, by).backward(of_y);
  const auto grad = [](const Var& var) { return var.defined() ? var.grad() : Tensor(); };
  return {grad(x), grad(by.skipped), grad(by.gate), grad(by.skip), grad(by.gain), grad(by.shift)};
}

// 600 rows are several pieces, whose sums are those of each hundred rows alone, to the last bit
// the same for any number of threads.
TEST(OpsGatedNorm, GradientsOfManyRows) {
  for_each_choice([](const GatedNorm& by) {
    const NormGradients all = gradients_of(by, 0, 600);
    set_threads(2);
    const NormGradients again = gradients_of(by, 0, 600);
    set_threads(1);
    for (const auto member : {&NormGradients::x, &NormGradients::skipped, &NormGradients::gate,
                              &NormGradients::skip, &NormGradients::gain, &NormGradients::shift}) {
      const Tensor &one = all.*member, &two = again.*member;
      for (int64_t i = 0; one.defined() && i < one.size(); ++i) ASSERT_EQ(one[i], two[i]);
    }
    for (const auto member : {&NormGradients::skip, &NormGradients::gain, &NormGradients::shift}) {
      if (!(all.*member).defined()) continue;
      std::vector<double> sums(static_cast<size_t>((all.*member).size()));
      for (int64_t begin = 0; begin < 600; begin += 100) {
        const Tensor part = gradients_of(by, begin, begin + 100).*member;
        for (size_t j = 0; j < sums.size(); ++j) sums[j] += of(part, static_cast<int64_t>(j));
      }
      for (size_t j = 0; j < sums.size(); ++j)
        ASSERT_NEAR(of(all.*member, static_cast<int64_t>(j)), sums[j],
                    kClose * 50 + kClose * std::fabs(sums[j]));
    }
  });
}

TEST(OpsGatedNorm, SaysWhatDoesNotFit) {
  const Var x(Tensor::zeros({2, 12}));
  const Var five(Tensor::zeros({5})), twelve(Tensor::zeros({12}));
  EXPECT_THROW(gated_norm(x, {.norm = Norm::rms, .segment = 5}), Error);
  EXPECT_THROW(gated_norm(x, {.norm = Norm::rms, .gain = five}), Error);
  EXPECT_THROW(gated_norm(x, {.gain = twelve}), Error);
  EXPECT_THROW(gated_norm(x, {.skip = twelve}), Error);
  EXPECT_THROW(gated_norm(x, {.activation = Activation::silu}), Error);
  EXPECT_THROW(gated_norm(x, {.activation = Activation::silu, .gate = twelve}), Error);
  EXPECT_THROW(gated_norm(x, {.gate = x}), Error);
}

}  // namespace
}  // namespace attn::ops_gated_norm_test
