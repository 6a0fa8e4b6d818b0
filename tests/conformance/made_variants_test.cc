// What `attnbench new` makes passes the contract as it is made, for each family and for a task.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "harness/check/contract.h"
#include "variants/api/variant_info.h"

namespace attn::variants {
VariantInfo made_pattern();  // made from templates/ by tests/conformance/templates.cmake
VariantInfo made_scores();
VariantInfo made_kernel();
VariantInfo made_mixer();
}  // namespace attn::variants

namespace attn::made_variants_test {
namespace {

using attn_check::Level;
using attn_check::Outcome;

// By ATTN_CONFORMANCE=full; in full, the four take half a minute.
Level asked_level() {
  const char* const wanted = std::getenv("ATTN_CONFORMANCE");
  return wanted && std::string(wanted) == "full" ? Level::full : Level::quick;
}

void expect_passes(const VariantInfo& info) {
  const auto results = check_variant(info, {}, asked_level());
  bool is_referenced = false;
  for (const attn_check::Result& result : results) {
    EXPECT_NE(result.outcome, Outcome::failed)
        << info.name << " " << result.name << ": " << result.detail;
    if (result.name == "reference") is_referenced = result.outcome == Outcome::passed;
  }
  EXPECT_TRUE(is_referenced) << info.name;
}

TEST(MadeVariants, PatternPassesEveryCheck) { expect_passes(variants::made_pattern()); }
TEST(MadeVariants, ScoresPassEveryCheck) { expect_passes(variants::made_scores()); }
TEST(MadeVariants, KernelPassesEveryCheck) { expect_passes(variants::made_kernel()); }
TEST(MadeVariants, MixerPassesEveryCheck) { expect_passes(variants::made_mixer()); }

}  // namespace
}  // namespace attn::made_variants_test
