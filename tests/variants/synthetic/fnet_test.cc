// fnet against the two transforms written out; what it does twice; one position; and the trap of
// padding that is transformed too.
#include "tests/variants/mixers.h"
#include "variants/reference/long_convolutions.h"

namespace attn::fnet_test {
namespace {

using namespace mixers;

TEST(FNet, EqualsTheTransformsWrittenOut) {
  std::vector<Case> all = cases(false);
  all.push_back({2, 2, 19, 20, false, {19, 8}});  // more channels than a strip of 16 holds
  for (const Case& at : all)
    expect_twin("fnet", at, {}, [&](const auto& x, const auto&) {
      return oracle::fourier_mixing(x, {at.lengths});
    });
}

// n·d/2 times the input and the input with both axes reversed about their first element: the square
// of a cosine.
TEST(FNet, TwiceItIsAReflection) {
  const Case at{1, 2, 18, 5, false, {}};
  const auto fnet = build("fnet", at, {});
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Mixer& mixer = *as_mixer(*fnet);
  const Tensor twice = mixer.mix(mixer.mix(Var(x))).value();
  std::vector<double> want;
  for (int64_t i = 0; i < 18; ++i)
    for (int64_t c = 0; c < 10; ++c)
      want.push_back(90 * (static_cast<double>(x[i * 10 + c]) +
                           static_cast<double>(x[(18 - i) % 18 * 10 + (10 - c) % 10])));
  EXPECT_LE(bridge::relative_error(twice, want), 20 * kEpsilon);
}

TEST(FNet, RegressionPaddingIsNotTransformed) {
  const Case at{2, 1, 300, 4, false, {70, 300}};
  const auto fnet = build("fnet", at, {});
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Tensor padded = as_mixer(*fnet)->mix(Var(x), at.mask()).value(),
               alone = as_mixer(*fnet)->mix(Var(rows_of(x, 0, 0, 70))).value();
  EXPECT_LE(distance(rows_of(padded, 0, 0, 70), alone), 20 * kEpsilon);
  const Tensor rest = rows_of(padded, 0, 70, 300);
  for (const real value : rest.values()) EXPECT_EQ(value, 0);
}

}  // namespace
}  // namespace attn::fnet_test
