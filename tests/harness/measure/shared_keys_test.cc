// Keys and values shared by query heads (kv_heads): answers and gradients of a pass against heads
// that are repeated here, declared cost against the counters, states of decoding.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "harness/measure/peak_memory.h"
#include "harness/measure/workload.h"
#include "tests/harness/measure/workloads.h"
#include "variants/catalog.h"

namespace attn::shared_keys_test {
namespace {

constexpr double kReal = sizeof(real);

WorkloadSpec spec_of(const VariantInfo& info, int64_t kv_heads, Mode mode = Mode::forward) {
  WorkloadSpec spec;
  spec.variant = &info;
  spec.length = 128;
  spec.batch = 2;
  spec.heads = 4;
  spec.kv_heads = kv_heads;
  spec.head_dim = 16;
  spec.mode = mode;
  spec.causal = mode == Mode::decode;
  return spec;
}

// Head h of the result is head h / times of x [batch, heads, len, dim].
Tensor written_out(const Tensor& x, int64_t times) {
  const Tensor out(x.shape().with(1, x.dim(1) * times));
  const int64_t matrix = x.dim(2) * x.dim(3);
  for (int64_t b = 0; b < x.dim(0); b++)
    for (int64_t h = 0; h < out.dim(1); h++)
      std::copy_n(x.data() + (b * x.dim(1) + h / times) * matrix, matrix,
                  out.data() + (b * out.dim(1) + h) * matrix);
  return out;
}

TEST(SharedKeys, APassAnswersAsOneWithRepeatedHeads) {
  const NoGrad no_grad;
  for (const VariantInfo& info : all_variants())
    for (const bool causal : {false, true})
      for (const int64_t kv_heads : {1, 2}) {
        WorkloadSpec spec = spec_of(info, kv_heads);
        spec.causal = causal;
        if (why_not(spec)) continue;
        const Workload workload(spec);
        const std::vector<Var>& x = workload.inputs();
        ASSERT_EQ(x[1].shape(), x[0].shape().with(1, kv_heads)) << info.name;
        const int64_t times = spec.heads / kv_heads;
        const Tensor found = workload.forward().value();
        const Tensor wanted =
            workload.attention()
                .forward(x[0], Var(written_out(x[1].value(), times)),
                         Var(written_out(x[2].value(), times)), {causal, {}}, workload.gates())
                .value();
        for (int64_t i = 0; i < wanted.size(); i++)
          ASSERT_EQ(found[i], wanted[i]) << info.name << " " << kv_heads << " at " << i;
      }
}

TEST(SharedKeys, GradientsAreSumsOverTheQueryHeads) {
  for (const char* name : {"full", "performer"}) {
    const WorkloadSpec spec = spec_of(find_variant(name), 2, Mode::train);
    Workload workload(spec);
    workload.run();
    const std::vector<Var>& x = workload.inputs();
    const Var keys(written_out(x[1].value(), 2), true), values(written_out(x[2].value(), 2), true);
    const Var out = workload.attention().forward(x[0], keys, values);
    out.backward(Tensor::normal(out.shape(), rng(spec.seed, "workload gradient")));
    const int64_t matrix = spec.length * spec.head_dim;
    for (const auto& [shared, own] : {std::pair{x[1], keys}, {x[2], values}}) {
      ASSERT_TRUE(shared.grad().defined()) << name;
      for (int64_t i = 0; i < shared.value().size(); i++) {
        const int64_t at = i / matrix * 2 * matrix + i % matrix;
        ASSERT_NEAR(shared.grad()[i], own.grad()[at] + own.grad()[at + matrix], 1e-5)
            << name << " at " << i;
      }
    }
  }
}

// A pass reads fewer heads and writes and holds a copy for each query head, of what it reads.
TEST(SharedKeys, TheDeclaredCostIsThatOfThePass) {
  for (const VariantInfo& info : all_variants()) {
    const WorkloadSpec spec = spec_of(info, 1);
    if (why_not(spec)) continue;
    Workload own(spec_of(info, 0)), shared(spec);
    EXPECT_EQ(shared.flops(), own.flops()) << info.name;
    EXPECT_NEAR(counted_flops(shared) / counted_flops(own), 1, 1e-9) << info.name;
    const MemoryFigures before = measure_memory(own), after = measure_memory(shared);
    const int64_t tensors = info.read_by(Params(info.name, info.params, {})).keys ? 2 : 1;
    const int64_t repeated = tensors * 2 * 4 * 128 * 16 * static_cast<int64_t>(kReal);
    EXPECT_EQ(*after.declared_extra_bytes - *before.declared_extra_bytes, repeated) << info.name;
    EXPECT_EQ(after.extra_bytes - before.extra_bytes, repeated) << info.name;
    EXPECT_EQ(shared.bytes().value() - own.bytes().value(),
              static_cast<double>(repeated + repeated / 4))
        << info.name;
  }
}

struct LayerFigures {
  double flops = 0, counted = 0;
  int64_t weights_bytes = 0;
};
LayerFigures layer_figures(WorkloadSpec spec, ScopeKind scope) {
  spec.scope = scope;
  spec.length = 16;
  Workload workload(spec);
  return {workload.flops(), counted_flops(workload), measure_memory(workload).weights_bytes};
}

TEST(SharedKeys, ProjectionsOfKeysAreNarrower) {
  const VariantInfo& info = find_variant("full");
  const int64_t width = 4 * 16, saved_columns = width * 3 / 4;  // one head of four
  for (const ScopeKind scope : {ScopeKind::layer, ScopeKind::model})
    for (const Mode mode : {Mode::forward, Mode::train}) {
      const LayerFigures own = layer_figures(spec_of(info, 0, mode), scope),
                         shared = layer_figures(spec_of(info, 1, mode), scope);
      const int64_t layers = scope == ScopeKind::model ? 2 : 1;
      EXPECT_NEAR(shared.counted / shared.flops, 1, mode == Mode::train ? 0.1 : 0.02)
          << to_string(scope);
      const double saved = 2.0 * 2 * 16 * 2 * static_cast<double>(width * saved_columns * layers);
      EXPECT_EQ(own.flops - shared.flops, saved * (mode == Mode::train ? 3 : 1));
      if (mode == Mode::train) continue;  // whose peak may hold gradients too
      EXPECT_EQ(own.weights_bytes - shared.weights_bytes,
                2 * layers * width * saved_columns * static_cast<int64_t>(kReal));
    }
}

TEST(SharedKeys, TheStateOfADecoderHasTheHeadsOfKeys) {
  for (const char* name : {"full", "truncated", "linear"})
    for (const int64_t kv_heads : {1, 2}) {
      const VariantInfo& info = find_variant(name);
      const Workload own(spec_of(info, 0, Mode::decode)),
          shared(spec_of(info, kv_heads, Mode::decode));
      EXPECT_EQ(*shared.state_bytes() * 4, *own.state_bytes() * kv_heads) << name;
      EXPECT_LT(shared.bytes().value(), own.bytes().value()) << name;
      const Workload forward(spec_of(info, kv_heads));  // by formula, not as allocated
      EXPECT_EQ(*forward.state_bytes(), *shared.state_bytes()) << name;
    }
  for (const VariantInfo& info : all_variants()) {  // that of each query head, where it needs one
    const WorkloadSpec spec = spec_of(info, 2, Mode::decode);
    if (why_not(spec)) continue;
    const Workload own(spec_of(info, 0, Mode::decode)), shared(spec);
    EXPECT_LE(*shared.state_bytes(), *own.state_bytes()) << info.name;
    EXPECT_GE(*shared.state_bytes() * 2, *own.state_bytes()) << info.name;
  }
}

TEST(SharedKeys, ADecodeStepAnswersAsTheCausalForward) {
  for (const VariantInfo& info : all_variants()) {
    WorkloadSpec spec = spec_of(info, 2, Mode::decode);
    if (why_not(spec)) continue;
    spec.batch = 128;  // many and narrow: most states grow with the square of head_dim
    spec.head_dim = 32;
    spec.length = 150;
    const int64_t n = spec.length, many = prefill_positions(spec);
    ASSERT_LT(many, n - 1);
    const NoGrad no_grad;
    Workload workload(spec);
    workload.run();
    const auto drawn = [&](const char* purpose) {
      std::vector<Var> parts;
      for (int64_t at = 0; at < n - 1; at += many)
        parts.emplace_back(
            Tensor::normal({spec.batch, 2, std::min(many, n - 1 - at), spec.head_dim},
                           rng(spec.seed, purpose, static_cast<uint64_t>(at))));
      return parts;
    };
    const std::vector<Var>& last = workload.inputs();
    std::vector<Var> keys = drawn("workload keys"), values = drawn("workload values");
    std::vector<Var> queries;  // read where queries serve as keys
    for (const Var& key : keys) queries.emplace_back(written_out(key.value(), 2));
    queries.push_back(last[0]), keys.push_back(last[1]), values.push_back(last[2]);
    const Tensor rows =
        workload.attention()
            .forward(concat(queries, 2), Var(written_out(concat(keys, 2).value(), 2)),
                     Var(written_out(concat(values, 2).value(), 2)), {true, {}},
                     gates_of_all_positions(workload))
            .value();
    expect_last_rows(workload, rows);
  }
}

TEST(SharedKeys, WhatCannotBeSharedIsRefused) {
  EXPECT_EQ(why_not(spec_of(find_variant("full"), 3)), "heads 4 are not a multiple of kv_heads 3");
  EXPECT_EQ(why_not(spec_of(find_variant("full"), 8)), "heads 4 are not a multiple of kv_heads 8");
  EXPECT_EQ(why_not(spec_of(find_variant("mean"), 2)),
            "mean has no keys that query heads could share (kv_heads)");
  EXPECT_EQ(why_not(spec_of(find_variant("mean"), 0)), std::nullopt);
  EXPECT_THROW(Workload{spec_of(find_variant("full"), 3)}, Error);
  EXPECT_THROW(Workload(spec_of(find_variant("full"), 2, Mode::decode)).forward(), Error);
}

}  // namespace
}  // namespace attn::shared_keys_test
