// A variant that declares no cost is measured all the same: FLOPs and memory are counted, bytes
// moved are unknown, its checks tell the figures, and its promises are still checked.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/memory.h"
#include "harness/check/contract.h"
#include "harness/measure/peak_memory.h"
#include "tests/variants/undeclared.h"
#include "variants/catalog.h"

namespace attn::undeclared_test {
namespace {

using attn_check::Level;
using attn_check::Outcome;

WorkloadSpec spec_of(const VariantInfo& info, Mode mode, ScopeKind scope = ScopeKind::attention) {
  WorkloadSpec spec;
  spec.variant = &info;
  spec.length = 128;
  spec.batch = 2;
  spec.heads = 2;
  spec.head_dim = 16;
  spec.mode = mode;
  spec.scope = scope;
  spec.causal = mode == Mode::decode;
  return spec;
}

constexpr double kForward = 4.0 * 2 * 2 * 128 * 128 * 16;  // FLOPs

TEST(UndeclaredCost, FlopsOfAWorkloadAreCounted) {
  Workload forward(spec_of(undeclared(), Mode::forward));
  EXPECT_FALSE(forward.declares_cost());
  EXPECT_EQ(forward.flops(), kForward);
  EXPECT_EQ(forward.bytes(), std::nullopt);
  EXPECT_EQ(Workload(spec_of(undeclared(), Mode::train)).flops(), 3 * kForward);
  // Of a layer the dense products too: as much more as for a variant that declares its cost.
  const double around =
      Workload(spec_of(find_variant("full"), Mode::forward, ScopeKind::layer)).flops() -
      Workload(spec_of(find_variant("full"), Mode::forward)).flops();
  EXPECT_NEAR(Workload(spec_of(undeclared(), Mode::forward, ScopeKind::layer)).flops(),
              kForward + around, 0.001 * kForward);
  EXPECT_TRUE(Workload(spec_of(find_variant("full"), Mode::forward)).declares_cost());
}

TEST(UndeclaredCost, MemoryHasNothingToCompareWith) {
  Workload composed(spec_of(undeclared(), Mode::forward));
  const MemoryFigures found = measure_memory(composed);
  EXPECT_EQ(found.declared_extra_bytes, std::nullopt);
  EXPECT_EQ(found.state_bytes, std::nullopt) << "it cannot decode";
  EXPECT_EQ(found.extra_bytes, 2 * 2 * 128 * (3 * 128 + 16) * static_cast<int64_t>(sizeof(real)));
}

TEST(UndeclaredCost, StatesAreHeldByADecoder) {
  Workload with(spec_of(find_variant("linear"), Mode::forward)),
      without(spec_of(undeclared_linear(), Mode::forward));
  EXPECT_EQ(without.state_bytes(), with.state_bytes());
  Workload step(spec_of(undeclared_linear(), Mode::decode));
  EXPECT_TRUE(step.declares_cost()) << "a decoder declares its step";
  EXPECT_GT(step.flops(), 0);
}

TEST(UndeclaredCost, PassesItsChecksAndTellsTheFigures) {
  for (const VariantInfo* info : {&undeclared(), &undeclared_linear()})
    for (const char* name : {"flops", "memory"}) {
      const auto results = check_variant(*info, {}, Level::quick, name);
      ASSERT_EQ(results.size(), 1U);
      EXPECT_EQ(results[0].outcome, Outcome::skipped) << results[0].detail;
      for (const char* told : {"not declared", "length 300", "length 600", "--derive"})
        EXPECT_NE(results[0].detail.find(told), std::string::npos) << results[0].detail;
    }
  const auto results = check_variant(undeclared(), {}, Level::quick, "flops");
  EXPECT_NE(results[0].detail.find(fmt::format("{:.4g} FLOPs", 4.0 * 4 * 300 * 300 * 16)),
            std::string::npos)
      << results[0].detail;
  EXPECT_TRUE(all_passed(check_variant(undeclared_linear(), {}, Level::quick)));
}

TEST(UndeclaredCost, APromiseToGrowLinearlyIsStillChecked) {
  VariantInfo liar = undeclared();
  liar.traits.linear_time = liar.traits.linear_memory = true;
  for (const char* name : {"flops", "memory"}) {
    const auto results = check_variant(liar, {}, Level::quick, name);
    ASSERT_EQ(results.size(), 1U);
    EXPECT_EQ(results[0].outcome, Outcome::failed) << results[0].detail;
    EXPECT_NE(results[0].detail.find("promised linear"), std::string::npos) << results[0].detail;
  }
}

}  // namespace
}  // namespace attn::undeclared_test
