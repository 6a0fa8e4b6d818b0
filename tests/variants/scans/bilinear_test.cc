// The bilinear rule against complex numbers written out, and its gradients.
#include "variants/scans/bilinear.h"

#include <cmath>
#include <complex>

#include "tests/core/autograd/gradient_check.h"

namespace attn::bilinear_test {
namespace {

std::vector<Tensor> weights() {
  std::vector<Tensor> all = {random_tensor({2, 3}, 1)};
  for (uint64_t seed = 2; seed < 8; ++seed) all.push_back(random_tensor({2, 4, 3}, seed));
  return all;
}

Var steps_of(const std::vector<Var>& in) {
  return bilinear_steps({in[0], in[1], in[2], in[3], in[4], in[5], in[6]});
}

TEST(Bilinear, IsItsDefinition) {
  const std::vector<Tensor> w = weights();
  std::vector<Var> in;
  for (const Tensor& x : w) in.emplace_back(x);
  const Tensor taps = steps_of(in).value();
  ASSERT_EQ(taps.shape(), Shape({4, 2, 4, 3}));
  for (int64_t i = 0; i < 24; ++i) {
    const auto at = [&](size_t which) { return static_cast<double>(w[which][i]); };
    const double step = std::exp(static_cast<double>(w[0][i / 12 * 3 + i % 3]));
    const std::complex a(-std::exp(at(1)), at(2)), b(at(3), at(4)), c(at(5), at(6));
    const std::complex factor = (1.0 + step * a / 2.0) / (1.0 - step * a / 2.0),
                       read = 2.0 * c * b * step / (1.0 - step * a / 2.0);
    const double expected[] = {factor.real(), factor.imag(), read.real(), read.imag()};
    for (int64_t part = 0; part < 4; ++part)
      ASSERT_NEAR(static_cast<double>(taps[part * 24 + i]), expected[part],
                  100 * static_cast<double>(kEpsilon) * (1 + std::fabs(expected[part])));
  }
}

TEST(Bilinear, Gradients) { expect_gradients(steps_of, weights()); }

}  // namespace
}  // namespace attn::bilinear_test
