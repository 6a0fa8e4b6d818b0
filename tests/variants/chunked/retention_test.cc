// retention against its parallel form (eq. 5) in double: rotation, decays and normalisation written
// out pair by pair; causal even where the model is not.
#include <gtest/gtest.h>

#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::retention_test {
namespace {

using oracle::Array;
using oracle::Index;

std::unique_ptr<Attention> build(int64_t heads, int64_t dim, int64_t max_len, bool causal) {
  return find_variant("retention").build({heads, dim, max_len, causal, 3, {}}, {});
}

// Σ_{j <= i} γ^(i-j)·(R_i·q_i)·(R_j·k_j)·v_j / √(d·Σ_{j <= i} γ^(i-j)). The rotated product depends
// on i - j alone: Σ over pairs of columns of Re((q·conj k)·e^(i·angle·(i - j))).
Array parallel_form(const std::vector<Array>& x) {
  const Array &q = x[0], &k = x[1];
  const double pairs = static_cast<double>(q.dim / 2);
  return oracle::weighted_sum(q, x[2], {true}, [&](Index b, Index h, Index i, Index j) {
    const double gamma = 1 - std::pow(2.0, -5.0 - static_cast<double>(h));
    double product = q.dim % 2 ? q.at(b, h, i, q.dim - 1) * k.at(b, h, j, q.dim - 1) : 0;
    for (Index c = 0; c + 1 < q.dim; c += 2) {
      const double share = pairs > 1 ? static_cast<double>(c / 2) / (pairs - 1) : 0;
      const double angle = static_cast<double>(i - j) * std::pow(10000.0, -share);
      const double q0 = q.at(b, h, i, c), q1 = q.at(b, h, i, c + 1);
      const double k0 = k.at(b, h, j, c), k1 = k.at(b, h, j, c + 1);
      product += (q0 * k0 + q1 * k1) * std::cos(angle) + (q0 * k1 - q1 * k0) * std::sin(angle);
    }
    const double sum = (1 - std::pow(gamma, static_cast<double>(i + 1))) / (1 - gamma);
    return product * std::pow(gamma, static_cast<double>(i - j)) /
           std::sqrt(sum * static_cast<double>(q.dim));
  });
}

TEST(Retention, IsItsParallelForm) {
  for (const int64_t dim : {1, 2, 5, 8})
    for (const bool causal : {false, true}) {
      const auto retention = build(3, dim, 80, causal);
      const Shape shape{2, 3, 80, dim};
      const std::vector<Tensor> inputs = {bridge::normal(shape, "q"), bridge::normal(shape, "k"),
                                          bridge::normal(shape, "v")};
      const Var q(inputs[0], true), k(inputs[1], true), v(inputs[2], true);
      const Var out = retention->forward(q, k, v, {causal, {}});
      std::vector<Array> arrays;
      for (const Tensor& t : inputs) arrays.push_back(bridge::array_of(t));
      const double error = bridge::relative_error(out.value(), parallel_form(arrays).x);
      EXPECT_TRUE(error <= 100 * kEpsilon) << error;
      const Tensor seed = bridge::normal(shape, "seed");
      out.backward(seed);
      bridge::expect_gradients(inputs, {q.grad(), k.grad(), v.grad()}, seed, parallel_form);
    }
}

// Also beyond the length that the variant was built for.
TEST(Retention, LaterPositionsLeaveEarlierOnesAlone) {
  const auto retention = build(2, 4, 20, true);
  const Tensor all = bridge::normal({1, 2, 90, 4}, "x");
  const NoGrad no_grad;
  const Tensor whole = retention->forward(Var(all), Var(all), Var(all), {true, {}}).value();
  const Tensor part({1, 2, 33, 4});  // longer than max_len, as the whole is
  for (int64_t h = 0; h < 2; ++h)
    std::copy_n(all.data() + h * 90 * 4, 33 * 4, part.data() + h * 33 * 4);
  const Tensor first = retention->forward(Var(part), Var(part), Var(part), {true, {}}).value();
  for (int64_t h = 0; h < 2; ++h)
    for (int64_t i = 0; i < 33 * 4; ++i)
      EXPECT_NEAR(first[h * 33 * 4 + i], whole[h * 90 * 4 + i], 20 * kEpsilon);
}

}  // namespace
}  // namespace attn::retention_test
