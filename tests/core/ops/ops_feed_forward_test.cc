// The fused feed-forward against loops in double and against differences; sizes at and beside the
// edges of tiles, stretches and panels.
#include <cmath>

#include "core/base/counters.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/core/autograd/gradient_check.h"

namespace attn::ops_feed_forward_test {
namespace {

struct Sizes {
  int64_t rows, in, hidden, out;
};

std::vector<Tensor> inputs_of(const Sizes& s) {
  return {random_tensor({s.rows, s.in}, 1),
          random_tensor({s.in, s.hidden}, 2, 1 / std::sqrt(static_cast<double>(s.in))),
          random_tensor({s.hidden}, 3),
          random_tensor({s.hidden, s.out}, 4, 1 / std::sqrt(static_cast<double>(s.hidden))),
          random_tensor({s.out}, 5),
          random_tensor({s.rows, s.out}, 6)};
}

Var apply(const std::vector<Var>& in) {
  return feed_forward(in[0], {in[1], in[2], in[3], in[4]}, in.size() > 5 ? in[5] : Var());
}

using Doubles = std::vector<double>;

// Value and the six gradients for the seed g, by definition.
std::vector<Doubles> slow(const Sizes& s, const std::vector<Tensor>& t, const Tensor& g) {
  const auto at = [](const Tensor& x, int64_t i) { return static_cast<double>(x[i]); };
  std::vector<Doubles> r = {Doubles(static_cast<size_t>(s.rows * s.out))};
  for (const Tensor& x : t) r.emplace_back(static_cast<size_t>(x.size()), 0.0);
  const auto to = [&](size_t which, int64_t i) -> double& {
    return r[which][static_cast<size_t>(i)];
  };
  for (int64_t i = 0; i < s.rows; i++) {
    for (int64_t o = 0; o < s.out; o++) {
      to(0, i * s.out + o) = at(t[4], o) + at(t[5], i * s.out + o);
      to(5, o) += at(g, i * s.out + o);
      to(6, i * s.out + o) = at(g, i * s.out + o);
    }
    for (int64_t h = 0; h < s.hidden; h++) {
      double z = at(t[2], h), top = 0;
      for (int64_t k = 0; k < s.in; k++) z += at(t[0], i * s.in + k) * at(t[1], k * s.hidden + h);
      const double below = 0.5 * std::erfc(-z / std::sqrt(2.0));
      for (int64_t o = 0; o < s.out; o++) {
        const double up = at(g, i * s.out + o), w = at(t[3], h * s.out + o);
        to(0, i * s.out + o) += z * below * w;
        to(4, h * s.out + o) += z * below * up;
        top += up * w;
      }
      top *= below + z * std::exp(-z * z / 2) / std::sqrt(2 * M_PI);
      to(3, h) += top;
      for (int64_t k = 0; k < s.in; k++) {
        to(1, i * s.in + k) += top * at(t[1], k * s.hidden + h);
        to(2, k * s.hidden + h) += top * at(t[0], i * s.in + k);
      }
    }
  }
  return r;
}

void expect_feed_forward(const Sizes& s) {
  SCOPED_TRACE(::testing::Message()
               << s.rows << " x " << s.in << " x " << s.hidden << " x " << s.out);
  const std::vector<Tensor> inputs = inputs_of(s);
  std::vector<Var> leaves;
  for (const Tensor& input : inputs) leaves.emplace_back(input, true);
  const Tensor g = random_tensor({s.rows, s.out}, 7);
  const double before = counters().flops;
  const Var y = apply(leaves);
  const double products = 2.0 * static_cast<double>(s.rows * s.hidden * (s.in + s.out));
  EXPECT_EQ(counters().flops - before, products);
  y.backward(g);
  EXPECT_EQ(counters().flops - before, 3 * products);
  const std::vector<Doubles> expected = slow(s, inputs, g);
  for (size_t which = 0; which < expected.size(); which++) {
    SCOPED_TRACE(which);
    const Tensor& got = which == 0 ? y.value() : leaves[which - 1].grad();
    // Sums of at most max(rows, hidden, in, out) products of numbers of size 1, each with a few
    // roundings of its own.
    const double terms = static_cast<double>(std::max({s.rows, s.hidden, s.in, s.out}));
    const double close = 60 * std::sqrt(terms) * static_cast<double>(kEpsilon);
    for (size_t i = 0; i < expected[which].size(); i++)
      ASSERT_LE(std::fabs(static_cast<double>(got[static_cast<int64_t>(i)]) - expected[which][i]),
                close)
          << i;
  }
}

TEST(OpsFeedForward, FollowsItsDefinitionAtEveryEdge) {
  for (const int64_t rows : {1, 5, 6, 7, 191, 192, 193}) expect_feed_forward({rows, 3, 5, 2});
  for (const int64_t hidden : {1, 15, 64, 65, 255, 256, 257, 320})
    expect_feed_forward({7, 3, hidden, 4});
  for (const int64_t in : {1, 64, 65, 257}) expect_feed_forward({8, in, 6, 3});
  for (const int64_t out : {1, 64, 65, 257}) expect_feed_forward({8, 3, 6, out});
  expect_feed_forward({0, 3, 4, 5});
  expect_feed_forward({400, 40, 300, 40});
  for (const int64_t rows : {383, 384, 385}) expect_feed_forward({rows, 255, 5, 2});  // cut wide
  for (const int64_t hidden : {127, 128, 129}) expect_feed_forward({10, 3, hidden, 254});
}

TEST(OpsFeedForward, GradientsAgainstDifferences) {
  const std::vector<Tensor> inputs = inputs_of({10, 4, 7, 4});
  expect_gradients(apply, inputs);
  expect_gradients(apply, {inputs.begin(), inputs.begin() + 5});
  expect_gradients(
      [](const std::vector<Var>& in) {  // x is the residual too, and is used elsewhere
        return add(feed_forward(in[0], {in[1], in[2], in[3], in[4]}, in[0]), square(in[0]));
      },
      {inputs.begin(), inputs.begin() + 5});
  const Tensor square = random_tensor({4, 4}, 8);
  expect_gradients(
      [](const std::vector<Var>& in) {
        return feed_forward(in[0], {in[0], in[1], in[0], in[1]});
      },
      {square, random_tensor({4}, 9)});
}

TEST(OpsFeedForward, EachGradientAlone) {
  const Sizes s = {20, 4, 7, 4};
  const std::vector<Tensor> inputs = inputs_of(s);
  const Tensor g = random_tensor({s.rows, s.out}, 7);
  const std::vector<Doubles> expected = slow(s, inputs, g);
  for (size_t wanted = 0; wanted < inputs.size(); wanted++) {
    std::vector<Var> in;
    for (size_t i = 0; i < inputs.size(); i++) in.emplace_back(inputs[i], i == wanted);
    apply(in).backward(g);
    for (int64_t i = 0; i < inputs[wanted].size(); i++)
      ASSERT_NEAR(static_cast<double>(in[wanted].grad()[i]),
                  expected[wanted + 1][static_cast<size_t>(i)],
                  300 * static_cast<double>(kEpsilon));
  }
}

TEST(OpsFeedForward, ThreadsChangeOnlyTheLastBits) {
  const std::vector<Tensor> inputs = inputs_of({900, 32, 64, 32});
  const auto run = [&](int count) {
    set_threads(count);
    std::vector<Var> in;
    for (const Tensor& input : inputs) in.emplace_back(input, true);
    const Var y = apply(in);
    y.backward(random_tensor(y.shape(), 7));
    set_threads(1);
    std::vector<Tensor> all = {y.value()};
    for (const Var& leaf : in) all.push_back(leaf.grad());
    return all;
  };
  const auto one = run(1), three = run(3), again = run(3);
  for (size_t t = 0; t < one.size(); t++)
    for (int64_t i = 0; i < one[t].size(); i++) {
      ASSERT_EQ(three[t][i], again[t][i]);
      ASSERT_NEAR(static_cast<double>(one[t][i]), static_cast<double>(three[t][i]),
                  60 * std::sqrt(900.0) * static_cast<double>(kEpsilon));
    }
}

TEST(OpsFeedForward, WrongShapesThrow) {
  const std::vector<Tensor> t = inputs_of({10, 4, 7, 3});
  std::vector<Var> good;
  for (const Tensor& input : t) good.emplace_back(input);
  for (size_t i = 0; i < good.size(); i++) {
    std::vector<Var> bad = good;
    bad[i] = Var(random_tensor({2, 5}, 1));
    EXPECT_THROW(apply(bad), Error) << i;
  }
}

}  // namespace
}  // namespace attn::ops_feed_forward_test
