// A stack of several variants as a model: its parameters, FLOPs and bytes of state are the sums of
// its layers', equal layers are the plain model bit for bit, and a decoder steps through it as it
// reads.
#include <gtest/gtest.h>

#include "harness/measure/workload.h"
#include "harness/model/encoder_decoder.h"
#include "tests/harness/measure/counted_flops.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/api/stack.h"
#include "variants/catalog.h"

namespace attn::stack_workload_test {
namespace {

WorkloadSpec spec_of(const char* variant, int64_t layers) {
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
          WorkloadSpec spec = spec_of(variant, layers);
          spec.mode = mode;
          return Workload(spec).flops();
        },
        0.5);
  expect_sum(
      [](const char* variant, int64_t layers) {
        return static_cast<double>(Workload(spec_of(variant, layers)).state_bytes().value());
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
  Workload workload(spec_of("full+linear+recurrent", 3));
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
