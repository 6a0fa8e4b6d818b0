// The checks of variants check: each planted fault of planted_variants.h is caught by the check
// that is meant to, at the level that is meant to; the same variant without a fault passes.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/check/contract.h"
#include "harness/check/process_memory.h"
#include "tests/conformance/planted_variants.h"
#include "tests/conformance/results_text.h"

namespace attn::planted_test {
namespace {

using attn_check::Level;

// In double, where the checks are compiled for gradients, what also shows in float is left to
// float.
constexpr Level kLevel = kIsDouble ? Level::quick : Level::full;

TEST(Faultless, PassesEveryCheck) {
  for (const bool referenced : {false, true}) {
    const auto results = check_variant(faultless(referenced), {}, kLevel);
    EXPECT_TRUE(all_passed(results)) << lines(results);
  }
  const auto gated = check_variant(faultless_gated(true), {}, kLevel);
  EXPECT_TRUE(all_passed(gated)) << lines(gated);
}

// A variant that throws is red too, but not for its fault.
void expect_measured(const std::vector<attn_check::Result>& results) {
  for (const attn_check::Result& result : results)
    EXPECT_FALSE(result.detail.starts_with("threw")) << lines({result});
}

class PlantedVariants : public testing::TestWithParam<PlantedVariant> {};
TEST_P(PlantedVariants, AreCaughtByTheCheckThatIsMeantTo) {
  const PlantedVariant& planted = GetParam();
  if (planted.info.name.starts_with("a_vector_") && !resident_growth([] {}))
    GTEST_SKIP() << "memory beside the pool cannot be told here: see process_memory.h";
  const Level level = planted.at_quick ? Level::quick : Level::full;
  const auto results = check_variant(planted.info, {}, level, planted.caught_by);
  EXPECT_EQ(red(results), std::vector<std::string>{planted.caught_by});
  if (!planted.throws) expect_measured(results);
}
TEST(PlantedAtShapes, AreCaughtAtTheShapeThatIsPublished) {
  for (const PlantedAtShape& planted : planted_at_shapes()) {
    SCOPED_TRACE(planted.info.name);
    const auto results = check_variant_at(planted.info, {}, planted.shape, 1);
    EXPECT_FALSE(all_passed(results)) << lines(results);
    expect_measured(results);
    EXPECT_TRUE(all_passed(check_variant_at(faultless(true), {}, planted.shape, 1)));
  }
}

std::vector<PlantedVariant> planted_here() {
  std::vector<PlantedVariant> all = planted_variants();
  if (kIsDouble)
    std::erase_if(all, [](const PlantedVariant& one) {
      const std::vector<std::string> also = double_check_names(one.info);
      return std::find(also.begin(), also.end(), one.caught_by) == also.end() ||
             (!one.at_quick && one.caught_by != "gradients");
    });
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, PlantedVariants, testing::ValuesIn(planted_here()),
                         [](const auto& one) { return one.param.info.name; });

}  // namespace
}  // namespace attn::planted_test
