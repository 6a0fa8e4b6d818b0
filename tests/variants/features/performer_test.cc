// performer: what sets Long Range Arena's form apart from the paper's; directions of hyperbolic
// features.
#include <gtest/gtest.h>

#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::performer_test {
namespace {

Tensor output(const std::string& as, uint64_t seed, double scale) {
  const auto attention = find_variant("performer").build({2, 6, 20, false, seed, {}}, {{"as", as}});
  const Tensor q = bridge::normal({1, 2, 20, 6}, "q", scale),
               k = bridge::normal({1, 2, 20, 6}, "k"), v = bridge::normal({1, 2, 20, 6}, "v");
  const NoGrad no_grad;
  return attention->forward(Var(q), Var(k), Var(v)).value();
}

// Its features hold nothing random, and its weights, unlike a softmax, hardly know how long a query
// is: relu(c·q) = c·relu(q) cancels in the ratio, up to the floor of 0.001.
TEST(Performer, RegressionLongRangeArenaHasNoRandomFeatures) {
  EXPECT_TRUE(find_variant("performer")
                  .build({2, 6, 20, false, 1, {}}, {{"as", std::string("lra")}})
                  ->weights()
                  .empty());
  for (const std::string as : {"paper", "lra"}) {
    EXPECT_EQ(bridge::same_bits(output(as, 1, 1), output(as, 2, 1)), as == "lra") << as;
    const double moved =
        bridge::relative_error(output(as, 1, 2), bridge::array_of(output(as, 1, 1)).x);
    EXPECT_EQ(moved < 0.01, as == "lra") << as << " " << moved;
  }
}

// ω and -ω: with x = -y a pair's features multiply to e^{-|x|²} exactly, whatever is drawn.
TEST(Performer, HyperbolicFeaturesAreOppositePairs) {
  const std::string hyperbolic = "hyperbolic";
  for (const int64_t features : {int64_t{6}, int64_t{7}}) {
    const auto attention = find_variant("performer")
                               .build({2, 5, 20, false, 3, {}},
                                      {{"features", features}, {"features_kind", hyperbolic}});
    const Tensor omega = attention->weights()[0].value.value();
    ASSERT_EQ(omega.dim(1), features);
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t f = 0; f + 1 < features; f += 2)
        for (int64_t c = 0; c < 5; ++c) {
          const real* const row = omega.data() + (h * features + f) * 5;
          EXPECT_EQ(row[c], -row[5 + c]);
          EXPECT_NE(row[c], real(0));
        }
  }
}

}  // namespace
}  // namespace attn::performer_test
