// mean against the sum written out, its equal (attention whose queries are zeros), and the traps:
// the mean over the padded length, and long sums in float.
#include "core/ops/ops.h"
#include "tests/variants/mixers.h"

namespace attn::mean_test {
namespace {

using namespace mixers;

TEST(Mean, EqualsTheSumOverTheCount) {
  for (const bool causal : {false, true})
    for (const Case& at : cases(causal))
      expect_twin("mean", at, {}, [&](const auto& x, const auto&) {
        return oracle::mean(x, causal, {at.lengths});
      });
}

TEST(Mean, EqualsSoftmaxAttentionOfZeroQueries) {
  for (const bool causal : {false, true}) {
    const Case at{2, 2, 33, 4, causal, {33, 9}};
    const Shape shape{2, 2, 33, 4};
    const Var q(Tensor::zeros(shape)), k(bridge::normal(shape, "k")), v(bridge::normal(shape, "v"));
    EXPECT_LE(distance(build("mean", at, {})->forward(q, k, v, at.mask()).value(),
                       build("full", at, {})->forward(q, k, v, at.mask()).value()),
              kIsDouble ? 1e-13 : 1e-6);
  }
}

TEST(Mean, RegressionDividesByTheValidLength) {
  const Case at{1, 1, 10, 2, false, {4}};
  const Tensor ones = Tensor::full(at.rows(), 1);
  const Tensor out = as_mixer(*build("mean", at, {}))->mix(Var(ones), at.mask()).value();
  for (const real value : out.values())
    EXPECT_EQ(value, 1);  // by the padded length it would be 0.4
}

TEST(Mean, RegressionLongSumsKeepTheirBits) {
  const int64_t n = 100'000;
  const Case at{1, 1, n, 1, true, {}};
  const Tensor out = as_mixer(*build("mean", at, {}))
                         ->mix(Var(Tensor::full(at.rows(), real(0.1))), at.mask())
                         .value();
  EXPECT_NEAR(out[n - 1], real(0.1), kIsDouble ? 1e-12 : 1e-8);  // a sum in float is off by 1e-3
}

}  // namespace
}  // namespace attn::mean_test
