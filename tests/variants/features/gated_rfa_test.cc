// gated_rfa against its recurrence, one position after the other, with the gradients of all inputs;
// a constant gate is an exponential mean.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/variants/features/kernel_twins.h"

namespace attn::gated_rfa_test {
namespace {

using namespace kernel_twins;

// The recurrence itself: S = g·S + (1 - g)·φ(k)ᵀv, as weights of pairs.
Array gated_twin(const std::vector<Array>& x, const Array& w, const std::vector<int64_t>& lengths) {
  Array out(x[0].batch, x[0].heads, x[0].len, x[2].dim);
  for (int64_t b = 0; b < out.batch; ++b)
    for (int64_t h = 0; h < out.heads; ++h) {
      std::vector<double> share;                  // of each key in the state
      std::vector<std::vector<double>> features;  // of each key
      for (int64_t i = 0; i < out.len; ++i) {
        features.push_back(wave_features(w, x[4], h, row_of(x[1], b, h, i)));
        const std::vector<double> asked = wave_features(w, x[4], h, row_of(x[0], b, h, i));
        if (lengths.empty() || i < lengths[static_cast<size_t>(b)]) {
          const double keep = 1 / (1 + std::exp(-x[3].at(b, h, i, 0)));
          for (double& value : share) value *= keep;
          share.push_back(1 / (1 + std::exp(x[3].at(b, h, i, 0))));
        }
        double total = 0;
        for (int64_t j = 0; j < static_cast<int64_t>(share.size()); ++j) {
          const double weight =
              share[static_cast<size_t>(j)] * product(asked, features[static_cast<size_t>(j)]);
          total += weight;
          for (int64_t c = 0; c < out.dim; ++c) out.at(b, h, i, c) += weight * x[2].at(b, h, j, c);
        }
        for (int64_t c = 0; c < out.dim && total != 0; ++c) out.at(b, h, i, c) /= total;
      }
    }
  return out;
}

TEST(GatedRfa, EqualsTheRecurrenceForwardAndBackward) {
  for (const auto& [level, spread] : {std::pair{0.0, 1.0}, {3.0, 1.0}, {-2.0, 3.0}})
    for (const int64_t n :
         level == 0 ? std::vector<int64_t>{1, 64, 65, 140} : std::vector{int64_t{65}})
      for (const std::vector<int64_t>& lengths :
           {std::vector<int64_t>{}, {n / 2, n - 1}, {n - 1, 0}}) {
        SCOPED_TRACE(testing::Message() << n << (lengths.empty() ? "" : " padded"));
        const auto attention = find_variant("gated_rfa").build({2, 5, n, true, 3, {}}, {});
        move_weights(*attention);
        Gated x(n, level, spread);
        x.pad(lengths);
        const Var out = x.run(*attention, lengths);
        const Array w = bridge::array_of(attention->weights()[0].value.value());
        const Var scales = attention->weights()[1].value;
        std::vector<Tensor> inputs = x.inputs;
        inputs.push_back(scales.value());
        std::vector<Array> arrays;
        for (const Tensor& t : inputs) arrays.push_back(bridge::array_of(t));
        const Array want = gated_twin(arrays, w, lengths);
        EXPECT_TRUE(bridge::relative_error(out.value(), want.x) <= 400 * kEpsilon)
            << bridge::relative_error(out.value(), want.x);
        const Tensor seed = bridge::normal(out.shape(), "seed");
        out.backward(seed);
        std::vector<Tensor> grads;
        for (const Var& var : x.vars) grads.push_back(var.grad());
        grads.push_back(scales.grad());
        bridge::expect_gradients(inputs, grads, seed, [&](const std::vector<Array>& a) {
          return gated_twin(a, w, lengths);
        });
      }
}

// Equal rows have equal kernels: what is left is the exponential mean of the values.
TEST(GatedRfa, AConstantGateOfEqualRowsIsAnExponentialMean) {
  constexpr int64_t n = 3000;
  const auto attention = find_variant("gated_rfa").build({1, 4, n, true, 3, {}}, {});
  const Tensor ones = Tensor::full({1, 1, n, 4}, 1), v = bridge::normal({1, 1, n, 4}, "v"),
               gate = Tensor::full({1, 1, n, 1}, real(1.5));
  const std::vector<Var> gates = {Var(gate)};
  const Tensor out = attention->forward(Var(ones), Var(ones), Var(v), {true, {}}, gates).value();
  const double keep = 1 / (1 + std::exp(-1.5));
  double mean = 0, total = 0;
  for (int64_t i = 0; i < n; ++i) {
    mean = keep * mean + (1 - keep) * static_cast<double>(v[i * 4]);
    total = keep * total + (1 - keep);
    ASSERT_NEAR(static_cast<double>(out[i * 4]), mean / total, 100 * kEpsilon) << i;
  }
}

}  // namespace
}  // namespace attn::gated_rfa_test
