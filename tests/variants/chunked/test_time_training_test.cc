// ttt_linear against its dual form in double with the layer norm's Jacobian written out, with the
// gradients of all inputs and weights, for mini-batches of 1 to all; decoding; long sequences; no
// training, and the delta rule.
#include <gtest/gtest.h>

#include <array>

#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "tests/variants/chunked/stepwise.h"
#include "variants/catalog.h"
#include "variants/chunked/chunked.h"
#include "variants/chunked/test_time_training.h"

namespace attn::test_time_training_test {
namespace {

using stepwise::answer;
using stepwise::Array;
using stepwise::Index;

std::unique_ptr<Attention> build_ttt(int64_t heads, int64_t dim, int64_t len,
                                     int64_t mini_batch = 16) {
  return find_variant("ttt_linear")
      .build({heads, dim, len, true, 3, {}}, {{"mini_batch", mini_batch}});
}

// Weights as after some training.
void disturb(const Attention& ttt) {
  const double sizes[] = {0.05, 0.3, 0.3, 0.3, 0.3};
  for (size_t i = 0; i < ttt.weights().size(); ++i) {
    const Var weight = ttt.weights()[i].value;
    Tensor moved = bridge::normal(weight.shape(), ttt.weights()[i].name.c_str(), sizes[i]);
    for (int64_t j = 0; j < moved.size(); ++j) moved[j] += weight.value()[j];
    weight.set_value(moved);
  }
}

using Numbers = std::vector<double>;

// (x - mean)·r and its derivative [to, from].
struct Norm {
  Numbers value, slope;
};
Norm norm_of(const Numbers& x) {
  const size_t n = x.size();
  const auto count = static_cast<double>(n);
  double mean = 0, square = 0;
  for (const double value : x) mean += value / count;
  for (const double value : x) square += value * value / count;
  const double r = std::pow(square - mean * mean + 1e-6, -0.5);
  Norm norm{Numbers(n), Numbers(n * n)};
  for (size_t a = 0; a < n; ++a) {
    norm.value[a] = (x[a] - mean) * r;
    for (size_t c = 0; c < n; ++c)
      norm.slope[a * n + c] =
          r * ((a == c ? 1 : 0) - 1 / count) - r * r * r * (x[a] - mean) * (x[c] - mean) / count;
  }
  return norm;
}

// The dual form. x: q, k, v, the gate, and theta, gain, shift, W [1, heads, d, d] and b.
Array twin(const std::vector<Array>& x, Index mini_batch, const std::vector<int64_t>& lengths) {
  const Array &q = x[0], &k = x[1], &v = x[2];
  const Index d = q.dim;
  const auto at = [](Index i) { return static_cast<size_t>(i); };
  Array out(q.batch, q.heads, q.len, d);
  for (Index b = 0; b < q.batch; ++b)
    for (Index h = 0; h < q.heads; ++h) {
      Numbers weights, bias;
      for (Index c = 0; c < d; ++c) bias.push_back(x[8].at(0, 0, h, c));
      for (Index c = 0; c < d * d; ++c) weights.push_back(x[7].at(0, h, c / d, c % d));
      const auto model = [&](const Array& rows, Index t) {
        Numbers z = bias;
        for (Index c = 0; c < d; ++c)
          for (Index e = 0; e < d; ++e) z[at(e)] += rows.at(b, h, t, c) * weights[at(c * d + e)];
        return z;
      };
      const Index valid = lengths.empty() ? q.len : lengths[at(b)];
      for (Index first = 0; first < q.len; first += mini_batch) {
        const Index end = std::min(q.len, first + mini_batch), keys = std::min(end, valid);
        std::vector<Numbers> grads;
        for (Index j = first; j < keys; ++j) {
          const Norm norm = norm_of(model(k, j));
          grads.emplace_back(at(d));
          for (Index a = 0; a < d; ++a) {
            const double gain = x[5].at(0, 0, h, a);
            const double error = gain * norm.value[at(a)] + x[6].at(0, 0, h, a) -
                                 (v.at(b, h, j, a) - k.at(b, h, j, a));
            for (Index c = 0; c < d; ++c)
              grads.back()[at(c)] += error * gain * norm.slope[at(a * d + c)];
          }
        }
        const auto rate = [&](Index i, Index j) {
          const double mean = 1 / static_cast<double>(i - first + 1);
          return std::max(0.0, mean + x[4].x[at(i - first)]) /
                 (1 + std::exp(-x[3].at(b, h, j, 0))) / static_cast<double>(d);
        };
        for (Index i = first; i < end && valid > 0; ++i) {
          Numbers y = model(q, i);
          const Index last = std::min(i, keys - 1);  // a query in the padding reads what it left
          for (Index j = first; j <= last; ++j)
            for (Index c = 0; c < d; ++c)
              y[at(c)] -= rate(last, j) * (oracle::dot(q.row(b, h, i), k.row(b, h, j)) + 1) *
                          grads[at(j - first)][at(c)];
          const Norm norm = norm_of(y);
          for (Index c = 0; c < d; ++c)
            out.at(b, h, i, c) =
                q.at(b, h, i, c) + x[6].at(0, 0, h, c) + x[5].at(0, 0, h, c) * norm.value[at(c)];
        }
        for (Index j = first; j < keys && end < q.len; ++j)
          for (Index c = 0; c < d; ++c) {
            const double step = rate(keys - 1, j) * grads[at(j - first)][at(c)];
            bias[at(c)] -= step;
            for (Index e = 0; e < d; ++e) weights[at(e * d + c)] -= step * k.at(b, h, j, e);
          }
      }
    }
  return out;
}

TEST(TestTimeTraining, EqualsItsDualForm) {
  struct Case {
    int64_t mini_batch;
    std::vector<int64_t> lengths;
  };
  for (const Case& c :
       {Case{1, {}}, {7, {37, 9}}, {16, {}}, {16, {20, 33}}, {16, {0, 33}}, {37, {}}, {64, {}}}) {
    SCOPED_TRACE(c.mini_batch);
    const int64_t heads = 2, len = 37, dim = 6;
    const auto ttt = build_ttt(heads, dim, len, c.mini_batch);
    disturb(*ttt);
    const stepwise::Drawn x({2, heads, len, dim}, {1}, c.lengths);
    const Var out = answer(*ttt, x, c.lengths);
    std::vector<Tensor> inputs = x.all;
    const Shape shapes[] = {{1, 1, 1, c.mini_batch},
                            {1, 1, heads, dim},
                            {1, 1, heads, dim},
                            {1, heads, dim, dim},
                            {1, 1, heads, dim}};
    for (size_t i = 0; i < std::size(shapes); ++i)
      inputs.push_back(ttt->weights()[i].value.value().reshaped(shapes[i]));
    std::vector<Array> arrays = bridge::arrays_of(inputs);
    const bridge::Twin want = [&](const std::vector<Array>& moved) {
      return twin(moved, c.mini_batch, c.lengths);
    };
    EXPECT_LE(bridge::relative_error(out.value(), want(arrays).x), 200 * kEpsilon);
    const Tensor seed = bridge::normal(out.shape(), "seed");
    out.backward(seed);
    std::vector<Tensor> grads = x.grads();
    for (const auto& weight : ttt->weights()) grads.push_back(weight.value.grad());
    bridge::expect_gradients(inputs, grads, seed, want, 1e-6);
  }
}

TEST(TestTimeTraining, StepsAreTheDualForm) {
  for (const int64_t mini_batch : {1, 7, 16, 64}) {
    const auto ttt = build_ttt(2, 6, 50, mini_batch);
    disturb(*ttt);
    const stepwise::Drawn x({1, 2, 50, 6}, {1}, {});
    const Tensor want = answer(*ttt, x).value(), got(want.shape()), row({1, 2, 1, 6});
    const auto decoder = ttt->decoder(1, 50);
    const auto slice_of = [&](size_t i, int64_t begin, int64_t end) {
      return slice(x.vars[i], 2, begin, end).value();
    };
    decoder->extend(slice_of(1, 0, 20), slice_of(2, 0, 20), {}, std::array{slice_of(3, 0, 20)});
    for (int64_t t = 20; t < 50; ++t) {
      decoder->step(slice_of(0, t, t + 1), slice_of(1, t, t + 1), slice_of(2, t, t + 1), row,
                    std::array{slice_of(3, t, t + 1)});
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t c = 0; c < 6; ++c)
          EXPECT_NEAR(row[h * 6 + c], want[(h * 50 + t) * 6 + c], 500 * kEpsilon)
              << t << " of mini-batches of " << mini_batch;
    }
    EXPECT_EQ(decoder->state_bytes(), static_cast<int64_t>(sizeof(real)) * 2 * 2 * (36 + 6));
  }
}

// The state is trained again and again, and rounding does not add up.
TEST(TestTimeTraining, LongSequencesAreThatOfDouble) {
  const int64_t len = kIsDouble ? 2048 : 65536;
  const auto ttt = build_ttt(1, 4, len);
  const stepwise::Drawn x({1, 1, len, 4}, {1}, {});
  const NoGrad no_grad;
  std::vector<Array> arrays = bridge::arrays_of(x.all);
  const Shape shapes[] = {{1, 1, 1, 16}, {1, 1, 1, 4}, {1, 1, 1, 4}, {1, 1, 4, 4}, {1, 1, 1, 4}};
  for (size_t i = 0; i < std::size(shapes); ++i)
    arrays.push_back(bridge::array_of(ttt->weights()[i].value.value().reshaped(shapes[i])));
  EXPECT_LE(bridge::relative_error(answer(*ttt, x).value(), twin(arrays, 16, {}).x),
            1000 * kEpsilon);
}

// Where no position has a rate: o = q + LN(q·W + b).
TEST(TestTimeTraining, WithoutRatesTheModelStaysAsItIs) {
  const auto ttt = build_ttt(1, 5, 40);
  disturb(*ttt);
  const stepwise::Drawn x({1, 1, 40, 5}, {1}, {});
  x.all[3].fill(-200);
  const Tensor got = answer(*ttt, x).value();
  const auto weight = [&](size_t i) { return ttt->weights()[i].value; };
  const Var z = linear(x.vars[0], reshape(weight(3), {5, 5}), reshape(weight(4), {5}));
  const Var want = add(
      x.vars[0], layer_norm(z, reshape(weight(1), {5}), reshape(weight(2), {5}), kTrainingEpsilon));
  EXPECT_LE(bridge::relative_error(got, bridge::array_of(want.value()).x), 20 * kEpsilon);
}

// Mini-batches of 1, without norm and b, from W = 0, with targets v: W = W - η·kᵀ·(k·W - v).
TEST(TestTimeTraining, WithoutTheNormItIsTheDeltaRule) {
  const Shape rows{1, 2, 90, 6};
  const Var q(bridge::normal(rows, "q")), k(bridge::normal(rows, "k", 0.3));
  const Var v(bridge::normal(rows, "v")), rate = sigmoid(Var(bridge::normal(rows.with(3, 1), "x")));
  const Var none(Tensor::zeros({2, 6}));
  const Var got = test_time_training({.q = q,
                                      .k = k,
                                      .v = add(v, k),
                                      .rate = rate,
                                      .token_rates = Var(Tensor::full({1}, 1)),
                                      .gain = none,
                                      .shift = none,
                                      .weights = Var(Tensor::zeros({2, 6, 6})),
                                      .bias = none},
                                     {.normalise = false});
  const Tensor want = chunked_attention({.q = q, .k = k, .v = v, .beta = rate}).value();
  EXPECT_LE(bridge::relative_error(got.value(), bridge::array_of(want).x), 50 * kEpsilon);
}

TEST(TestTimeTraining, CostIsWhatIsCounted) {
  const ScopedThreads one_thread(1);
  for (const int64_t mini_batch : {7, 16, 400}) {
    const auto ttt = build_ttt(2, 24, 333, mini_batch);
    const stepwise::Drawn x({2, 2, 333, 24}, {1}, {});
    const Cost cost = training_cost({2, 2, 333, 333, 24, true}, mini_batch);
    double before = counters().flops;
    const Var out = answer(*ttt, x);
    EXPECT_DOUBLE_EQ(counters().flops - before, cost.flops);
    before = counters().flops;
    out.backward(out.value());
    EXPECT_DOUBLE_EQ(counters().flops - before, cost.backward_flops);
  }
}

TEST(TestTimeTraining, RefusesWhatDoesNotFit) {
  const Shape rows{1, 2, 5, 3};
  const Var x(Tensor::zeros(rows)), head(Tensor::zeros({2, 3}));
  TrainingInputs in{x,
                    x,
                    x,
                    Var(Tensor::zeros({1, 2, 5, 1})),
                    Var(Tensor::zeros({4})),
                    head,
                    head,
                    Var(Tensor::zeros({2, 3, 3})),
                    head};
  EXPECT_NO_THROW(test_time_training(in));
  in.bias = Var(Tensor::zeros({2, 4}));
  EXPECT_THROW(test_time_training(in), Error);
}

}  // namespace
}  // namespace attn::test_time_training_test
