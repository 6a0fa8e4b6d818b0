// FLOPs by formula against the kernels' own counters, at every scope; refusals; and that every run
// does the same.
#include "harness/measure/workload.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/counters.h"
#include "core/parallel.h"
#include "variants/catalog.h"

namespace attn {
namespace {

WorkloadSpec spec_of(const char* variant, ScopeKind scope, Mode mode = Mode::forward) {
  WorkloadSpec spec;
  spec.variant = &find_variant(variant);
  spec.length = 128;
  spec.batch = 2;
  spec.heads = 2;
  spec.head_dim = 16;
  spec.scope = scope;
  spec.mode = mode;
  return spec;
}

double counted(Workload& workload) {
  workload.run();
  const double before = counters().flops;
  workload.run();
  return counters().flops - before;
}

TEST(Workload, FlopsByFormulaAreWhatTheKernelsCount) {
  for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model}) {
    Workload workload(spec_of("full", scope));
    const double ratio = counted(workload) / workload.flops();
    EXPECT_GE(ratio, 0.98) << to_string(scope);
    EXPECT_LE(ratio, 1.02) << to_string(scope);
  }
}

// At length 16 and width 32 the dense products are nearly all of a layer's work.
TEST(Workload, TrainCountsTheBackwardOfDenseLayersTwice) {
  WorkloadSpec spec = spec_of("full", ScopeKind::layer, Mode::train);
  spec.length = 16;
  Workload workload(spec);
  const double ratio = counted(workload) / workload.flops();
  EXPECT_GE(ratio, 0.9);
  EXPECT_LE(ratio, 1.1);
}

// Two threads walk keys and queries of the tiled backward apart and make the scores once more: that
// is no work of the formula.
TEST(Workload, TrainFlopsOfEveryVariantAreWhatTheKernelsCount) {
  std::vector<WorkloadSpec> specs;
  for (const VariantInfo& info : all_variants())
    specs.push_back(spec_of(info.name.c_str(), ScopeKind::attention, Mode::train));
  specs.push_back(spec_of("full", ScopeKind::attention, Mode::train));
  specs.back().params = {{"kernel", std::string("materialized")}};
  for (WorkloadSpec& spec : specs)
    for (const bool causal : {false, true}) {
      if (causal && !spec.variant->traits.causal) continue;
      spec.length = 300;
      spec.causal = causal;
      Workload workload(spec);
      EXPECT_NEAR(counted(workload) / workload.flops(), 1, 0.02) << spec.variant->name << causal;
    }
}

TEST(Workload, RunsEveryVariantAtEveryScopeInBothModes) {
  for (const VariantInfo& info : all_variants()) {
    for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model}) {
      for (const Mode mode : {Mode::forward, Mode::train}) {
        Workload workload(spec_of(info.name.c_str(), scope, mode));
        const double first = counted(workload), second = counted(workload);
        EXPECT_GT(first, 0) << info.name;
        EXPECT_EQ(first, second) << info.name << " " << to_string(scope) << " " << to_string(mode);
      }
    }
  }
}

TEST(Workload, TrainDoesMoreThanForward) {
  for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model}) {
    Workload forward(spec_of("linear", scope)), train(spec_of("linear", scope, Mode::train));
    EXPECT_GT(counted(train), 2 * counted(forward)) << to_string(scope);
  }
}

TEST(Workload, UsesTheThreadsOfItsSpec) {
  WorkloadSpec spec = spec_of("full", ScopeKind::attention);
  spec.threads = 2;
  Workload workload(spec);
  set_threads(1);
  workload.run();
  EXPECT_EQ(threads(), 2);
  set_threads(1);
}

TEST(Workload, RefusesWhatTheVariantCannotDo) {
  WorkloadSpec spec = spec_of("linformer", ScopeKind::attention);
  spec.causal = true;
  EXPECT_THROW(Workload{spec}, Error);
  EXPECT_THROW(Workload{WorkloadSpec{}}, Error);
  const Workload layer(spec_of("full", ScopeKind::layer));
  EXPECT_THROW(layer.attention(), Error);
}

}  // namespace
}  // namespace attn
