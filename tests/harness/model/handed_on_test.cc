// What layers hand on through models: who receives what, gradients down to the layer that made it,
// and steps as prefixes.
#include "harness/model/handed_on.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/ops/ops.h"
#include "harness/model/encoder_decoder.h"
#include "harness/model/layer_stack.h"
#include "tests/said.h"
#include "variants/api/carrying.h"
#include "variants/catalog.h"

namespace attn::handed_on_test {
namespace {

constexpr int64_t kWidth = 16, kHeads = 2, kLength = 9, kBatch = 2;

LayerConfig layer_of(const std::string& variant, AttentionWatch watch = {}) {
  const VariantInfo& info = find_variant(variant);
  return {.variant = &info,
          .width = kWidth,
          .heads = kHeads,
          .feed_forward = 24,
          .max_len = kLength,
          .causal = info.traits.causal,
          .watch = std::move(watch)};
}

bool same(const Tensor& a, const Tensor& b) {
  return a.defined() && b.defined() && a.shape() == b.shape() &&
         std::equal(a.data(), a.data() + a.size(), b.data());
}

// What each layer of a model was told, by index.
std::vector<AttentionPass> told(const std::string& variant, int64_t layers) {
  std::vector<AttentionPass> all;
  const LayerStack stack(layer_of(variant, [&](const AttentionPass& one) { all.push_back(one); }),
                         layers, 4);
  const NoGrad no_grad;
  stack.forward(Var(Tensor::normal({kBatch, kLength, kWidth}, rng(3, "x"))));
  return all;
}

TEST(HandedOn, TheFirstLayersValuesReachAllOthers) {
  const std::vector<AttentionPass> all = told("rwkv7[block=paper]", 3);
  EXPECT_FALSE(all[0].received.defined());
  EXPECT_EQ(all[0].handed.shape(), (Shape{kBatch, kLength, kWidth}));
  for (const size_t i : {1, 2}) {
    EXPECT_TRUE(same(all[i].received, all[0].handed)) << i;
    EXPECT_TRUE(same(all[i].handed, all[0].handed)) << i;
  }
}

TEST(HandedOn, PackedRowsGoFromLayerToLayer) {
  const std::vector<AttentionPass> all = told("luna[block=paper]", 3);
  EXPECT_FALSE(all[0].received.defined());
  EXPECT_TRUE(same(all[1].received, all[0].handed));
  EXPECT_TRUE(same(all[2].received, all[1].handed));
  EXPECT_FALSE(same(all[1].handed, all[0].handed));
}

// The first layer of the variant makes it, wherever it stands; others are passed by.
TEST(HandedOn, InAStackItGoesToLayersOfTheSameVariant) {
  const std::vector<AttentionPass> all =
      told("full+rwkv7[block=paper]+mamba2[block=paper]+rwkv7[block=paper,gate_rank=8]", 8);
  for (const size_t i : {0, 2, 4, 6}) EXPECT_FALSE(all[i].handed.defined()) << i;
  EXPECT_FALSE(all[1].received.defined());
  EXPECT_FALSE(all[3].received.defined());  // of other parameters: another variant
  EXPECT_TRUE(same(all[5].received, all[1].handed));
  EXPECT_TRUE(same(all[7].received, all[3].handed));
  EXPECT_FALSE(same(all[1].handed, all[3].handed));
}

TEST(HandedOn, ALayerThatReceivesDoesNotRunAlone) {
  const Layer later(layer_config_at(layer_of("rwkv7[block=paper]"), 1));
  const Var x(Tensor::zeros({1, kLength, kWidth}));
  EXPECT_TRUE(says(fault_of([&] { later.forward(x, {}); }), "cannot run without it"));
}

// Of the weights that make what is handed on: a model's output moves with them through the later
// layers as its gradient says.
TEST(HandedOn, GradientsGoBackToTheLayerThatMadeIt) {
  for (const auto& [variant, name] :
       std::map<std::string, std::string>{{"rwkv7[block=paper]", "layers.0.attention.W_v"},
                                          {"luna[block=paper]", "layers.0.attention.latents"}}) {
    const LayerStack stack(layer_of(variant), 3, 4);
    const Var x(Tensor::normal({kBatch, kLength, kWidth}, rng(3, "x")));
    const Tensor seed = Tensor::normal(x.shape(), rng(5, "seed"));
    const auto answer = [&] { return sum(multiply(stack.forward(x), Var(seed))); };
    answer().backward();
    for (const Weight& weight : stack.weights()) {
      if (weight.name != name) continue;
      const Tensor start = weight.value.value().clone(),
                   direction = Tensor::normal(start.shape(), rng(6, "direction"));
      const double step = kIsDouble ? 1e-6 : 2e-3;
      double claimed = 0, found = 0, length = 0;
      for (int64_t i = 0; i < start.size(); ++i) {
        const auto slope = static_cast<double>(weight.value.grad()[i]);
        claimed += slope * static_cast<double>(direction[i]);
        length += slope * slope;
      }
      for (const double sign : {1.0, -1.0}) {
        const Tensor moved = start.clone();
        for (int64_t i = 0; i < moved.size(); ++i)
          moved[i] += static_cast<real>(sign * step * static_cast<double>(direction[i]));
        weight.value.set_value(moved);
        const NoGrad no_grad;
        found += sign * static_cast<double>(answer().value()[0]) / (2 * step);
      }
      EXPECT_GT(length, 1e-3) << variant;
      EXPECT_NEAR(claimed / std::sqrt(length), found / std::sqrt(length), kIsDouble ? 1e-6 : 5e-2)
          << variant;
    }
  }
}

// Every layer but the first gives the first one's values weight, so that values of another
// position would show.
TEST(HandedOn, StepsEqualPrefixesInModelsOfUpToThreeLayers) {
  constexpr int64_t kOutputs = 11, kClasses = 5;
  for (const std::string variant : {"rwkv7[block=paper]", "full+rwkv7[block=paper]"})
    for (const int64_t layers : {2, 3, 4}) {
      if (layers % std::max<int64_t>(1, std::ssize(find_variant(variant).layers))) continue;
      EncoderDecoderConfig config{.outputs = kOutputs, .exact = &find_variant("full")};
      config.model = {.layer = layer_of(variant),
                      .layers = layers,
                      .vocab = 7,
                      .length = kLength,
                      .classes = kClasses,
                      .seed = 2};
      config.model.layer.causal = false;
      const EncoderDecoder model(config);
      Batch source{.size = kBatch, .length = kLength};
      for (int64_t i = 0; i < kBatch * kLength; ++i)
        source.tokens.push_back(static_cast<int32_t>(i % 7));
      const EncoderDecoder::Memory memory = model.encode(source);
      std::vector<int32_t> inputs;
      Rng random = rng(5, "handed_on_test");
      for (int64_t i = 0; i < kBatch * kOutputs; ++i)
        inputs.push_back(static_cast<int32_t>(random.below(kClasses + 2)));
      const Tensor expected = model.decode(memory, inputs).value();
      EncoderDecoder::States states = model.start(memory, kOutputs);
      double off = 0;
      for (int64_t i = 0; i < kOutputs; ++i) {
        const Tensor logits =
            model.step(memory, states,
                       {inputs[static_cast<size_t>(i)], inputs[static_cast<size_t>(kOutputs + i)]});
        for (int64_t b = 0; b < kBatch; ++b)
          for (int64_t c = 0; c <= kClasses; ++c)
            off = std::max(
                off,
                std::abs(static_cast<double>(logits[b * (kClasses + 1) + c] -
                                             expected[(b * kOutputs + i) * (kClasses + 1) + c])));
      }
      EXPECT_LE(off, 1000 * static_cast<double>(kEpsilon)) << variant << " of " << layers;
    }
}

}  // namespace
}  // namespace attn::handed_on_test
