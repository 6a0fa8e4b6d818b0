// Workloads in bfloat16: what they hold, whether declared bytes are the measured ones, decoding,
// shared keys, and the two errors of fidelity.
#include <gtest/gtest.h>

#include "harness/measure/fidelity.h"
#include "harness/measure/peak_memory.h"
#include "harness/measure/workload.h"
#include "variants/catalog.h"

namespace attn::bfloat16_workload_test {
namespace {

WorkloadSpec spec_of(const char* variant, Dtype dtype, Mode mode = Mode::forward) {
  WorkloadSpec spec;
  spec.variant = &find_variant(variant);
  spec.length = 512, spec.batch = 1, spec.heads = 2, spec.head_dim = 32;
  spec.dtype = dtype;
  spec.mode = mode;
  spec.causal = mode == Mode::decode;
  return spec;
}

MemoryFigures memory_of(const WorkloadSpec& spec) {
  Workload workload(spec);
  return measure_memory(workload);
}

TEST(BFloat16Workload, InputsAndOutputTakeTwoBytesWhereTheVariantReadsThem) {
  constexpr int64_t kArray = 2 * 512 * 32;  // numbers
  const MemoryFigures wide = memory_of(spec_of("full", Dtype::float32)),
                      narrow = memory_of(spec_of("full", Dtype::bfloat16));
  EXPECT_EQ(wide.peak_bytes - wide.extra_bytes, 3 * kArray * 4);
  EXPECT_EQ(narrow.peak_bytes - narrow.extra_bytes, 3 * kArray * 2);
  EXPECT_LT(narrow.peak_bytes, wide.peak_bytes);
  EXPECT_FALSE(Workload(spec_of("full", Dtype::bfloat16)).widens());
}

TEST(BFloat16Workload, WhatIsWidenedIsPartOfThePass) {
  constexpr int64_t kArray = 2 * 512 * 32;
  const MemoryFigures wide = memory_of(spec_of("relu", Dtype::float32)),
                      widened = memory_of(spec_of("relu", Dtype::bfloat16));
  EXPECT_EQ(widened.extra_bytes - wide.extra_bytes, 3 * kArray * 4);
  EXPECT_TRUE(Workload(spec_of("relu", Dtype::bfloat16)).widens());
}

TEST(BFloat16Workload, DeclaredBytesAreTheMeasuredOnes) {
  for (const VariantInfo& info : all_variants())
    for (const bool causal : {false, true}) {
      WorkloadSpec spec = spec_of(info.name.c_str(), Dtype::bfloat16);
      spec.causal = causal;
      if (why_not(spec)) continue;
      const MemoryFigures found = memory_of(spec);
      if (!found.declared_extra_bytes) continue;
      const auto declared = static_cast<double>(*found.declared_extra_bytes);
      EXPECT_NEAR(static_cast<double>(found.extra_bytes), declared, 0.05 * declared + 8192)
          << info.name << (causal ? ", causal" : "");
    }
}

TEST(BFloat16Workload, TheStateOfADecoderThatKeepsItIsHalf) {
  for (const char* variant : {"full", "truncated"}) {
    Workload wide(spec_of(variant, Dtype::float32, Mode::decode)),
        narrow(spec_of(variant, Dtype::bfloat16, Mode::decode));
    EXPECT_FALSE(narrow.widens());
    EXPECT_NEAR(static_cast<double>(narrow.state_bytes().value()),
                0.5 * static_cast<double>(wide.state_bytes().value()), 256)
        << variant;
    EXPECT_EQ(narrow.bytes().value(), 0.5 * wide.bytes().value());
  }
  Workload wide(spec_of("linear", Dtype::float32, Mode::decode)),
      widened(spec_of("linear", Dtype::bfloat16, Mode::decode));
  EXPECT_TRUE(widened.widens());
  EXPECT_EQ(widened.state_bytes(), wide.state_bytes());
}

// The states hold the same random numbers, rounded or not.
TEST(BFloat16Workload, DecodesNearWhatFloat32Decodes) {
  for (const VariantInfo& info : all_variants())
    for (const int64_t kv_heads : {0, 1}) {
      WorkloadSpec spec = spec_of(info.name.c_str(), Dtype::float32, Mode::decode);
      spec.kv_heads = kv_heads;
      // Keys that a query chooses change with rounding, where a score lies nearer to the last
      // chosen one than that: so all are chosen, by parameters or, as in nsa, by default.
      if (info.family == "selection" && info.limit) spec.params = info.limit(spec.shape())->params;
      WorkloadSpec small = spec;
      small.dtype = Dtype::bfloat16;
      // The buckets of reformer and yoso change with rounding.
      if (why_not(spec) || info.name == "reformer" || info.name == "yoso") continue;
      Workload wide(spec), narrow(small);
      wide.run(), narrow.run();
      const Tensor a = wide.decoded(), b = narrow.decoded();
      double largest = 0.1;
      for (int64_t i = 0; i < a.size(); i++)
        largest = std::max(largest, std::abs(static_cast<double>(a[i])));
      // Inputs, state and output are rounded: a few times 2^-8, and logits carry their error on.
      for (int64_t i = 0; i < a.size(); i++)
        ASSERT_NEAR(b[i], a[i], 10 * kBFloat16Rounding * largest) << info.name << " " << kv_heads;
    }
}

TEST(BFloat16Workload, FidelityTellsStorageFromMethod) {
  const WorkloadSpec spec = spec_of("full", Dtype::bfloat16);
  const FidelityFigures found = measure_fidelity(spec, InputKind::random, 1);
  ASSERT_TRUE(found.rounded_inputs_error);
  EXPECT_GT(*found.rounded_inputs_error, 1e-4);
  EXPECT_LT(*found.rounded_inputs_error, kBFloat16Rounding);
  // Errors of inputs and of the method are independent: the first adds to the second.
  EXPECT_GT(found.relative_error, *found.rounded_inputs_error);
  EXPECT_LT(found.relative_error, 3 * kBFloat16Rounding);
  EXPECT_FALSE(found.weights_kl);
  const FidelityFigures wide =
      measure_fidelity(spec_of("full", Dtype::float32), InputKind::random, 1);
  EXPECT_FALSE(wide.rounded_inputs_error);
  EXPECT_LT(wide.relative_error, 1e-6);
  // A method that is far from exact attention is as far from it with rounded inputs.
  const FidelityFigures far =
      measure_fidelity(spec_of("linear", Dtype::bfloat16), InputKind::random, 1);
  EXPECT_NEAR(*far.rounded_inputs_error / far.relative_error, 1, 0.02);
}

}  // namespace
}  // namespace attn::bfloat16_workload_test
