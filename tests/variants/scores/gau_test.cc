// gau against its equations in double; weights that are squares; and the trap of a causal row that
// is divided by the whole length.
#include "tests/variants/mixers.h"
#include "variants/reference/units.h"

namespace attn::gau_test {
namespace {

using namespace mixers;

TEST(Gau, EqualsItsEquations) {
  for (const bool causal : {false, true})
    for (const Case& at : cases(causal))
      if (at.len < 100)
        expect_twin("gau", at, {{"base", int64_t{5}}}, [&](const auto& x, const auto& w) {
          return oracle::gated_unit(x, w, causal, {at.lengths});
        });
}

// Queries four times as large, which rounds nothing: weights 16 times.
TEST(Gau, WeightsAreSquaresOfProducts) {
  const Case at{2, 1, 30, 6, false, {}};
  const auto gau = build("gau", at, {});
  draw_weights(*gau);
  const Tensor x = Tensor::normal(at.rows(), rng(1, "x"));
  const Tensor once = as_mixer(*gau)->mix(Var(x)).value();
  for (const Weight& weight : gau->weights())
    if (weight.name.starts_with("query")) {
      const Tensor larger = weight.value.value().clone();
      for (real& value : larger.values()) value *= 4;
      weight.value.set_value(larger);
    }
  std::vector<double> want;
  for (const real value : once.values()) want.push_back(16 * static_cast<double>(value));
  EXPECT_LE(bridge::relative_error(as_mixer(*gau)->mix(Var(x)).value(), want), 20 * kEpsilon);
}

TEST(Gau, RegressionACausalRowDoesNotKnowTheLength) {
  const Case at{1, 1, 300, 6, true, {}};
  const auto gau = build("gau", at, {});
  draw_weights(*gau);
  const Tensor x = Tensor::normal(at.rows(), rng(2, "x"));
  const Tensor all = as_mixer(*gau)->mix(Var(x), at.mask()).value(),
               first = as_mixer(*gau)->mix(Var(rows_of(x, 0, 0, 70)), at.mask()).value();
  EXPECT_LE(distance(first, rows_of(all, 0, 0, 70)), 50 * kEpsilon);
}

}  // namespace
}  // namespace attn::gau_test
