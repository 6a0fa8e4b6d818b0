// performer as Long Range Arena's code has it: what sets it apart from the paper's.
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

}  // namespace
}  // namespace attn::performer_test
