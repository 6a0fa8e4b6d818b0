// The tape: sums over paths, sharing, release, NoGrad, custom ops, memory between steps, long
// chains.
#include <algorithm>
#include <cmath>

#include "core/base/memory.h"
#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::var_test {
namespace {

TEST(Var, GradientsOfAllPathsAddUp) {
  expect_gradients(
      [](const std::vector<Var>& in) {
        const Var a = multiply(in[0], in[1]);
        const Var b = add(a, in[0]);
        return add(multiply(a, b), multiply(b, b));
      },
      {random_tensor({3, 4}, 1), random_tensor({3, 4}, 2)});
}

TEST(Var, LeavesNeverShareTheirGradient) {
  const Var a(random_tensor({4}, 1), true), b(random_tensor({4}, 2), true);
  const Tensor seed = Tensor::full({4}, 1);
  add(a, b).backward(seed);
  EXPECT_NE(a.grad().data(), b.grad().data());
  EXPECT_NE(a.grad().data(), seed.data());
  EXPECT_NE(b.grad().data(), seed.data());
  a.zero_grad();
  EXPECT_EQ(b.grad()[0], real(1));
  EXPECT_EQ(seed[0], real(1));
}

TEST(Var, TheSeedIsNotOverwritten) {
  const Var a(Tensor::full({4}, 2), true);
  const Tensor seed = Tensor::full({4}, 3);
  scale(square(a), 5).backward(seed);
  for (int64_t i = 0; i < 4; i++) {
    EXPECT_EQ(seed[i], real(3));
    EXPECT_EQ(a.grad()[i], real(60));
  }
}

TEST(Var, ZeroGradKeepsTheMemory) {
  const Var a(random_tensor({64}, 1), true);
  sum(square(a)).backward();
  const real* held = a.grad().data();
  a.zero_grad();
  EXPECT_EQ(a.grad()[0], real(0));
  sum(square(a)).backward();
  EXPECT_EQ(a.grad().data(), held);
  EXPECT_EQ(a.grad()[3], 2 * a.value()[3]);
}

TEST(Var, ATapeRunsOnce) {
  const Var a(random_tensor({4}, 1), true);
  const Var middle = square(a);
  const Var y = sum(middle), z = sum(middle);
  y.backward();
  EXPECT_THROW(y.backward(), Error);
  EXPECT_THROW(z.backward(), Error);
}

TEST(Var, WrongUseThrows) {
  const Var a(random_tensor({4}, 1), true), constant(random_tensor({4}, 1));
  EXPECT_THROW(square(a).backward(), Error);
  EXPECT_THROW(square(a).backward(Tensor({3})), Error);
  EXPECT_THROW(sum(constant).backward(), Error);
  EXPECT_THROW(Var().value(), Error);
  EXPECT_THROW(Var{Tensor{}}, Error);
  EXPECT_THROW(square(a).set_value(Tensor({4})), Error);
  EXPECT_THROW(a.set_value(Tensor({3})), Error);
  EXPECT_FALSE(Var().defined());
  EXPECT_FALSE(constant.grad().defined());
}

TEST(Var, SetValueCopies) {
  const Var a(Tensor::zeros({3}), true);
  const Tensor other = Tensor::full({3}, 7);
  a.set_value(other);
  EXPECT_NE(a.value().data(), other.data());
  EXPECT_EQ(a.value()[2], real(7));
}

TEST(Var, NothingIsRecordedUnderNoGradOrFromConstants) {
  const Var a(random_tensor({4}, 1), true), constant(random_tensor({4}, 1));
  EXPECT_TRUE(recording({a, constant}));
  EXPECT_FALSE(recording({constant}));
  EXPECT_FALSE(square(constant).requires_grad());
  {
    const NoGrad guard;
    EXPECT_TRUE(NoGrad::active());
    EXPECT_FALSE(recording({a}));
    EXPECT_FALSE(square(a).requires_grad());
  }
  EXPECT_FALSE(NoGrad::active());
}

TEST(Var, NoGradKeepsNothing) {
  const Var a(random_tensor({1000}, 1), true);
  const int64_t before = memory_use().live_total;
  const int64_t bytes = static_cast<int64_t>((1000 * sizeof(real) + 63) / 64 * 64);
  const NoGrad guard;
  const Var y = scale(exponential(gelu(square(a))), 2);
  EXPECT_EQ(memory_use().live_total - before, bytes);
}

TEST(Var, ReleasingATapeFreesWhatItKept) {
  const Var a(random_tensor({1000}, 1), true);
  sum(square(a)).backward();  // the leaf's gradient exists from here on
  const int64_t before = memory_use().live_total;
  {
    const Var y = sum(exponential(gelu(scale(a, 2))));
    EXPECT_GT(memory_use().live_total, before + 1000);
    y.backward();
    EXPECT_LE(memory_use().live_total, before + 64);  // y itself
  }
  { const Var dropped = sum(exponential(gelu(scale(a, 2)))); }
  EXPECT_EQ(memory_use().live_total, before);
}

TEST(Var, ValuesNobodyNeedsAreFreedWhileTheTapeLives) {
  const Var a(random_tensor({1000}, 1), true);
  const int64_t before = memory_use().live_total;
  const Var y = shift(scale(shift(a, 1), 2), 3);
  EXPECT_EQ(memory_use().live_total - before,
            static_cast<int64_t>((1000 * sizeof(real) + 63) / 64 * 64));
}

TEST(Var, SteadyStepsFetchNothingFromTheSystem) {
  const Var w(random_tensor({32, 32}, 1), true), x(random_tensor({50, 32}, 2));
  const auto step = [&] {
    w.zero_grad();
    mean(gelu(matmul(softmax(matmul(x, w)), w))).backward();
  };
  step();
  step();
  const int64_t calls = memory_use().system_calls;
  for (int i = 0; i < 5; i++) step();
  EXPECT_EQ(memory_use().system_calls, calls);
}

TEST(Var, LongChainsNeedNoStack) {
  const Var a(Tensor::full({1}, 1), true);
  for (const bool run : {true, false}) {
    Var y = a;
    for (int i = 0; i < 200000; i++) y = shift(y, 0);
    if (run) y.backward();
  }
  EXPECT_EQ(a.grad()[0], real(1));
}

Var cube_times(const Var& a, const Var& b) {
  const Tensor x = a.value(), y = b.value();
  Tensor out(x.shape());
  for (int64_t i = 0; i < x.size(); i++) out[i] = x[i] * x[i] * x[i] * y[i];
  return custom_op(out, {a, b}, [x, y](const Tensor& g, std::span<Tensor> grads) {
    for (int64_t i = 0; i < x.size(); i++) {
      if (grads[0].defined()) grads[0][i] += 3 * x[i] * x[i] * y[i] * g[i];
      if (grads[1].defined()) grads[1][i] += x[i] * x[i] * x[i] * g[i];
    }
  });
}

TEST(Var, CustomOp) {
  const Tensor x = random_tensor({6}, 1), y = random_tensor({6}, 2);
  expect_gradients([](const std::vector<Var>& in) { return cube_times(in[0], in[1]); }, {x, y});
  expect_gradients([](const std::vector<Var>& in) { return cube_times(in[0], in[0]); }, {x});
  expect_gradients([](const std::vector<Var>& in) { return add(cube_times(in[0], in[1]), in[0]); },
                   {x, y});
  expect_gradients(
      [](const std::vector<Var>& in) { return add(in[0], cube_times(add(in[0], in[1]), in[0])); },
      {x, y});
  const Var learned(x, true), constant(y);
  cube_times(learned, constant).backward(Tensor::full({6}, 1));
  EXPECT_TRUE(learned.grad().defined());
  EXPECT_FALSE(constant.grad().defined());
}

// Adds 1, 10, 100 .. to the gradients of its inputs, and says where these lie.
Var probe(const std::vector<Var>& inputs, std::vector<real*>* places) {
  const std::initializer_list<Var> given = {inputs[0], inputs[1], inputs[2], inputs[3]};
  return custom_op(Tensor::zeros(inputs[0].shape()), given,
                   [places](const Tensor&, std::span<Tensor> grads) {
                     places->clear();
                     real each = 1;
                     for (const Tensor& grad : grads) {
                       places->push_back(grad.data());
                       for (int64_t i = 0; grad.defined() && i < grad.size(); ++i) grad[i] += each;
                       each *= 10;
                     }
                   });
}

TEST(Var, AnInputGivenTwiceHasAGradientForEach) {
  const Var a(random_tensor({6}, 1), true), b(random_tensor({6}, 2), true);
  std::vector<real*> places;
  const auto step = [&] { probe({a, b, a, a}, &places).backward(Tensor::full({6}, 1)); };
  step();
  std::vector<real*> apart = places;
  std::sort(apart.begin(), apart.end());
  EXPECT_EQ(std::adjacent_find(apart.begin(), apart.end()), apart.end());
  EXPECT_EQ(places[0], a.grad().data()) << "the first needs no other buffer";
  EXPECT_EQ(places[1], b.grad().data());
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(a.grad()[i], 1 + 100 + 1000);
    EXPECT_EQ(b.grad()[i], 10);
  }
  step();
  EXPECT_EQ(a.grad()[5], 2 * (1 + 100 + 1000));
  const int64_t calls = memory_use().system_calls, live = memory_use().live_total;
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(memory_use().system_calls, calls);
  EXPECT_EQ(memory_use().live_total, live);
  probe({a, b, Var(b.value()), b}, &places).backward(Tensor::full({6}, 1));
  EXPECT_EQ(places[2], nullptr) << "a constant";
  EXPECT_EQ(a.grad()[0], 7 * (1 + 100 + 1000) + 1);
  EXPECT_EQ(b.grad()[0], 7 * 10 + 10 + 1000);
}

TEST(Var, GradientsOfViewsAndOfSharedSumsAreApartToo) {
  const Var a(random_tensor({6}, 1), true), b(random_tensor({6}, 2), true);
  const Var first = reshape(a, {6}), second = reshape(a, {6}), third = scale(b, 2);
  std::vector<real*> places;
  const Var probed = probe({first, second, third, first}, &places);
  // its backward runs first and gives one tensor to both
  const Var later = add(add(second, third), first);
  add(probed, later).backward(Tensor::full({6}, 1));
  std::sort(places.begin(), places.end());
  EXPECT_EQ(std::adjacent_find(places.begin(), places.end()), places.end());
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(a.grad()[i], 2 + 1 + 10 + 1000);
    EXPECT_EQ(b.grad()[i], 2 * (1 + 100));
  }
}

TEST(Var, AThrowingBackwardLeavesItsInputsUsable) {
  const Var a(random_tensor({6}, 1), true);
  const Var broken = custom_op(Tensor::zeros({6}), {a, a}, [](const Tensor&, std::span<Tensor>) {
    throw Error("no gradient today");
  });
  EXPECT_THROW(broken.backward(Tensor::full({6}, 1)), Error);
  a.zero_grad();
  std::vector<real*> places;
  probe({a, a, a, a}, &places).backward(Tensor::full({6}, 1));
  EXPECT_EQ(places[0], a.grad().data());
  EXPECT_EQ(a.grad()[0], 1111);
}

TEST(Var, BackwardOfALeafIsItsSeed) {
  const Var a(random_tensor({3}, 1), true);
  a.backward(Tensor::full({3}, 2));
  a.backward(Tensor::full({3}, 2));
  EXPECT_EQ(a.grad()[1], real(4));
}

}  // namespace
}  // namespace attn::var_test
