// FLOPs by formula against the kernels' own counters, at every scope; refusals; and that every run
// does the same.
#include "harness/measure/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/base/memory.h"
#include "core/base/parallel.h"
#include "core/ops/ops.h"
#include "harness/measure/workload_inputs.h"
#include "tests/harness/measure/workloads.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::workload_test {
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

TEST(Workload, FlopsByFormulaAreWhatTheKernelsCount) {
  for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model}) {
    Workload workload(spec_of("full", scope));
    const double ratio = counted_flops(workload) / workload.flops();
    EXPECT_GE(ratio, 0.98) << to_string(scope);
    EXPECT_LE(ratio, 1.02) << to_string(scope);
  }
}

// At length 16 and width 32 the dense products are nearly all of a layer's work.
TEST(Workload, TrainCountsTheBackwardOfDenseLayersTwice) {
  WorkloadSpec spec = spec_of("full", ScopeKind::layer, Mode::train);
  spec.length = 16;
  Workload workload(spec);
  const double ratio = counted_flops(workload) / workload.flops();
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
      spec.length = 300;
      spec.causal = causal;
      if (why_not(spec)) continue;
      Workload workload(spec);
      EXPECT_NEAR(counted_flops(workload) / workload.flops(), 1, 0.02)
          << spec.variant->name << causal;
    }
}

TEST(Workload, RunsEveryVariantAtEveryScopeInBothModes) {
  for (const VariantInfo& info : all_variants()) {
    for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model}) {
      for (const Mode mode : {Mode::forward, Mode::train}) {
        WorkloadSpec spec = spec_of(info.name.c_str(), scope, mode);
        spec.causal = why_not(spec).has_value();  // of a variant that is causal alone
        Workload workload(spec);
#ifdef ATTN_SANITIZED
        constexpr int64_t kRuns = 1;  // a sanitizer has seen enough, and is slow
#else
        constexpr int64_t kRuns = ChangingRow<real>::kSets;
#endif
        const auto of_all_rows = [&] {  // one row changes from run to run, and comes again
          double flops = 0;
          for (int64_t i = 0; i < kRuns; i++) flops += counted_flops(workload);
          return flops;
        };
        const double first = of_all_rows();
        EXPECT_GT(first, 0) << info.name;
        if (kRuns == 1) continue;
        const double second = of_all_rows();
        // Threads add their counts in any order, and some counts are no whole numbers.
        EXPECT_NEAR(first / second, 1, 1e-12)
            << info.name << " " << to_string(scope) << " " << to_string(mode);
      }
    }
  }
}

TEST(Workload, TrainDoesMoreThanForward) {
  for (const ScopeKind scope : {ScopeKind::attention, ScopeKind::layer, ScopeKind::model}) {
    Workload forward(spec_of("linear", scope)), train(spec_of("linear", scope, Mode::train));
    EXPECT_GT(counted_flops(train), 2 * counted_flops(forward)) << to_string(scope);
  }
}

WorkloadSpec decode_spec(const VariantInfo& info, int64_t length) {
  WorkloadSpec spec = spec_of(info.name.c_str(), ScopeKind::attention, Mode::decode);
  spec.length = length;
  spec.causal = true;
  return spec;
}

TEST(Workload, DecodesTheLastTokenOfALengthEveryTime) {
  for (const VariantInfo& info : all_variants()) {
    if (!info.traits.decode) continue;
    for (const int64_t length : {1, 2, 130, 3000}) {
      Workload workload(decode_spec(info, length));
      const int64_t live = memory_use().live_total;
      for (int i = 0; i < 3; i++) {
        const double flops =
            counted_flops(workload);  // what follows from the data is known after it
        EXPECT_DOUBLE_EQ(workload.flops(), flops) << info.name << length;
      }
      EXPECT_EQ(memory_use().live_total, live) << info.name << length;
      EXPECT_NEAR(static_cast<double>(*workload.state_bytes()),
                  workload.attention_cost()->state_bytes, 256)
          << info.name << length;
    }
  }
}

// What is timed is the answer to the last position, from keys and values appended in pieces.
TEST(Workload, DecodesWhatTheCausalForwardSaysOfTheLastRow) {
  for (const VariantInfo& info : all_variants()) {
    if (!info.traits.decode) continue;
    WorkloadSpec spec = decode_spec(info, 300);
    spec.batch = 32;
    spec.heads = 4;
    spec.head_dim = 32;
    const int64_t n = spec.length, many = prefill_positions(spec);
    ASSERT_LT(many, n - 1);
    const auto drawn = [&](int64_t len, const char* purpose, int64_t index) {
      return Var(Tensor::normal({spec.batch, spec.heads, len, spec.head_dim},
                                rng(spec.seed, purpose, static_cast<uint64_t>(index))));
    };
    std::vector<Var> keys, values;
    for (int64_t at = 0; at < n - 1; at += many) {
      keys.push_back(drawn(std::min(many, n - 1 - at), "workload keys", at));
      values.push_back(drawn(std::min(many, n - 1 - at), "workload values", at));
    }
    std::vector<Var> queries = keys;  // read where queries serve as keys
    queries.push_back(drawn(1, "workload inputs", 0));
    keys.push_back(drawn(1, "workload inputs", 1));
    values.push_back(drawn(1, "workload inputs", 2));
    const NoGrad no_grad;
    Workload workload(spec);
    workload.run();
    // The row that changes from run to run: of the first head's query, or of its value.
    const Var& changed = (info.read_by(spec.chosen()).queries ? queries : values).back();
    ChangingRow<real>(changed.value().data(), spec.head_dim, spec).take(0);
    const Tensor rows =
        workload.attention()
            .forward(concat(queries, 2), concat(keys, 2), concat(values, 2),
                     {.causal = true, .kv_lengths = {}}, gates_of_all_positions(workload))
            .value();
    expect_last_rows(workload, rows);
  }
}

// The cache read and its last position written; or the sums read and written, and directions read.
TEST(Workload, BytesOfATokenAreThoseOfItsState) {
  constexpr double kMatrices = 4, kDim = 16, kReal = sizeof(real);
  const Workload full(decode_spec(find_variant("full"), 100));
  EXPECT_EQ(full.bytes(), 2 * kReal * kMatrices * kDim * (100 + 1));
  const Workload linear(decode_spec(find_variant("linear"), 100));
  EXPECT_EQ(linear.bytes(), 2 * kReal * kMatrices * kDim * (kDim + 1));
  const Workload performer(decode_spec(find_variant("performer"), 100));
  EXPECT_GT(performer.bytes(), 2 * static_cast<double>(*performer.state_bytes()));
  const Workload forward(spec_of("full", ScopeKind::attention));
  EXPECT_EQ(forward.bytes(), forward.attention_cost()->bytes);
  EXPECT_EQ(Workload(spec_of("full", ScopeKind::layer)).bytes(), std::nullopt);
  EXPECT_EQ(Workload(spec_of("full", ScopeKind::attention, Mode::train)).bytes(), std::nullopt);
}

TEST(Workload, TheMaterializedKernelDoesNotDecode) {
  WorkloadSpec spec = decode_spec(find_variant("full"), 16);
  spec.params = {{"kernel", std::string("materialized")}};
  EXPECT_TRUE(says(why_not(spec).value_or(""), "kernel=tiled"));
  EXPECT_THROW(Workload{spec}, Error);
}

// The work of a token follows the state that it reads.
TEST(Workload, OfTheFirstFiveOnlyTheFullStateGrowsWithTheContext) {
  for (const char* name : {"full", "truncated", "performer", "linear"}) {
    const VariantInfo& info = find_variant(name);
    const Workload near(decode_spec(info, 100)), far(decode_spec(info, 400));
    const auto growth =
        static_cast<double>(*far.state_bytes()) / static_cast<double>(*near.state_bytes());
    EXPECT_EQ(growth, info.traits.linear_time ? 1 : 4) << info.name;
    EXPECT_EQ(far.flops() / near.flops(), growth) << info.name;
  }
}

TEST(Workload, NoStateOrTokenGrowsFasterThanTheContext) {
  for (const VariantInfo& info : all_variants()) {
    if (!info.traits.decode) continue;
    const Workload near(decode_spec(info, 500)), far(decode_spec(info, 2000));
    const auto growth =
        static_cast<double>(*far.state_bytes()) / static_cast<double>(*near.state_bytes());
    EXPECT_GE(growth, 1) << info.name;
    EXPECT_LE(growth, 4) << info.name;
    EXPECT_LE(far.flops() / near.flops(), 4) << info.name;
  }
}

TEST(Workload, SaysWhyItCannotDecode) {
  WorkloadSpec spec = decode_spec(find_variant("linformer"), 16);
  EXPECT_EQ(why_not(spec), "cannot decode: it cannot be causal");
  EXPECT_THROW(Workload{spec}, Error);
  spec = decode_spec(find_variant("full"), 16);
  EXPECT_EQ(why_not(spec), std::nullopt);
  spec.scope = ScopeKind::layer;
  EXPECT_NE(why_not(spec), std::nullopt);
  spec = decode_spec(find_variant("full"), 16);
  spec.causal = false;
  EXPECT_NE(why_not(spec), std::nullopt);
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
}  // namespace attn::workload_test
