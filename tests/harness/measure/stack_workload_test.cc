// Workloads of stacks and of bfloat16.
#include <gtest/gtest.h>

#include "harness/measure/fidelity.h"
#include "harness/measure/peak_memory.h"
#include "harness/measure/workload.h"
#include "harness/model/encoder_decoder.h"
#include "tests/harness/measure/workloads.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/stack.h"
#include "variants/catalog.h"

namespace attn::stack_workload_test {
namespace {

// Workloads in bfloat16: what they hold, whether declared bytes are the measured ones, decoding,
// shared keys, and the two errors of fidelity.

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

// A stack of several variants as a model: its parameters, FLOPs and bytes of state are the sums of
// its layers', equal layers are the plain model bit for bit, and a decoder steps through it as it
// reads.

WorkloadSpec stack_spec_of(const char* variant, int64_t layers) {
  return {.variant = &find_variant(variant),
          .length = 32,
          .heads = 2,
          .head_dim = 8,
          .scope = ScopeKind::model,
          .layers = layers,
          .causal = true};
}

ModelConfig model_of(const VariantInfo& variant, int64_t layers) {
  return {
      .layer = {.variant = &variant, .width = 16, .heads = 2, .feed_forward = 8, .causal = true},
      .layers = layers,
      .vocab = 9,
      .length = 12,
      .classes = 3,
      .seed = 4};
}

// What `of` says of a layer of that variant, and of a model without its layers.
struct Parts {
  double layer = 0, rest = 0;
};
template <class Of>
Parts parts(const Of& of, const char* variant) {
  const double one = of(variant, 1), two = of(variant, 2);
  return {two - one, 2 * one - two};
}

template <class Of>
void expect_sum(const Of& of, double tolerance) {
  const Parts full = parts(of, "full"), other = parts(of, "recurrent");
  EXPECT_NE(full.layer, other.layer);
  EXPECT_NEAR(of("full+2*recurrent", 3), full.layer + 2 * other.layer + full.rest, tolerance);
  EXPECT_NEAR(of("full+2*recurrent", 6), 2 * full.layer + 4 * other.layer + full.rest, tolerance);
}

TEST(StackWorkload, FlopsAndStatesAddUp) {
  for (const Mode mode : {Mode::forward, Mode::train})
    expect_sum(
        [&](const char* variant, int64_t layers) {
          WorkloadSpec spec = stack_spec_of(variant, layers);
          spec.mode = mode;
          return Workload(spec).flops();
        },
        0.5);
  expect_sum(
      [](const char* variant, int64_t layers) {
        return static_cast<double>(Workload(stack_spec_of(variant, layers)).state_bytes().value());
      },
      0);
}

TEST(StackWorkload, ParametersAndStatesOfAModelAddUp) {
  expect_sum(
      [](const char* variant, int64_t layers) {
        return static_cast<double>(
            Encoder(model_of(find_variant(variant), layers)).parameter_count());
      },
      0);
  expect_sum(
      [](const char* variant, int64_t layers) {
        return static_cast<double>(
            Encoder(model_of(find_variant(variant), layers)).state_bytes(12).value());
      },
      0);
}

TEST(StackWorkload, FlopsByFormulaAreWhatTheKernelsCount) {
  Workload workload(stack_spec_of("full+linear+recurrent", 3));
  const double ratio = counted_flops(workload) / workload.flops();
  EXPECT_GE(ratio, 0.98);
  EXPECT_LE(ratio, 1.02);
}

Batch batch() {
  return {.size = 2, .length = 5, .tokens = {1, 2, 3, 0, 0, 6, 5, 2, 2, 1}, .lengths = {3, 5}};
}

// The catalogue makes no stack of equal layers; one made by hand is the plain model.
TEST(StackWorkload, EqualLayersAreThePlainModel) {
  for (const char* name : {"full", "recurrent"}) {
    const VariantInfo& plain = find_variant(name);
    VariantInfo stack = plain;
    stack.layers = {layer_of(plain, {}), layer_of(plain, {})};
    const Encoder one(model_of(plain, 2)), other(model_of(stack, 2));
    EXPECT_TRUE(bridge::same_bits(one.forward(batch()).value(), other.forward(batch()).value()));
  }
}

// Layers differ, and in this order.
TEST(StackWorkload, LayersStandInOrder) {
  const VariantInfo &ahead = find_variant("full+recurrent"),
                    &after = find_variant("recurrent+full");
  const auto has = [](const VariantInfo& info, const char* layer) {
    for (const Weight& weight : Encoder(model_of(info, 2)).weights())
      if (weight.name == std::string(layer) + ".W_q") return true;
    return false;
  };
  EXPECT_TRUE(has(ahead, "layers.0"));
  EXPECT_FALSE(has(ahead, "layers.1"));
  EXPECT_FALSE(has(after, "layers.0"));
  EXPECT_TRUE(has(after, "layers.1"));
}

// Rotary positions and shared keys are of the layers that have queries and keys.
TEST(StackWorkload, LayersWithoutKeysTakeNoneOfWhatIsForKeys) {
  ModelConfig config = model_of(find_variant("full+recurrent"), 2);
  config.positions = Positions::rotary;
  config.layer.kv_heads = 1;
  const Encoder model(config);
  EXPECT_EQ(model.forward(batch()).shape(), (Shape{2, 3}));
  config.layer.kv_heads = 0;
  EXPECT_LT(model.state_bytes(12).value(), Encoder(config).state_bytes(12).value());
}

TEST(StackWorkload, ADecoderStepsAsItReads) {
  ModelConfig model = model_of(find_variant("full+linear+recurrent"), 3);
  model.layer.causal = false;  // the encoder sees its whole source
  const EncoderDecoder both({.model = model, .outputs = 4, .exact = &exact_reference()});
  ASSERT_TRUE(both.has_states());
  EXPECT_EQ(both.places(), (std::vector<std::string>{"encoder", "decoder"}));
  const EncoderDecoder::Memory memory = both.encode(batch());
  EncoderDecoder::States states = both.start(memory, 4);
  const std::vector<std::vector<int32_t>> tokens = {{4, 4}, {1, 2}, {0, 1}};
  std::vector<int32_t> inputs;
  for (size_t b = 0; b < 2; ++b)
    for (const auto& step : tokens) inputs.push_back(step[b]);
  const Tensor read = both.decode(memory, inputs).value();  // [2, 3, classes + 1]
  for (int64_t t = 0; t < 3; ++t) {
    const Tensor step = both.step(memory, states, tokens[static_cast<size_t>(t)]);
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t c = 0; c < 4; ++c)
        EXPECT_NEAR(step[b * 4 + c], read[(b * 3 + t) * 4 + c], 1e-4) << t;
  }
}

}  // namespace
}  // namespace attn::stack_workload_test
