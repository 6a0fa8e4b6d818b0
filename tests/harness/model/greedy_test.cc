// Greedy decoding: from states as from prefixes, for every kind of state; when it ends; what it
// keeps.
#include "harness/model/greedy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/base/memory.h"
#include "core/ops/ops.h"
#include "variants/catalog.h"

namespace attn::greedy_test {
namespace {

using Outputs = std::vector<std::vector<int32_t>>;

struct Chosen {
  std::string name;
  std::map<std::string, ParamValue> params{};
};

constexpr int64_t kSize = 5, kLength = 12, kOutputs = 40, kClasses = 6;

EncoderDecoderConfig config_of(const Chosen& chosen, uint64_t seed = 3) {
  EncoderDecoderConfig config{.outputs = kOutputs, .exact = &find_variant("full")};
  config.model = {.layer = {.variant = &find_variant(chosen.name),
                            .variant_params = chosen.params,
                            .width = 16,
                            .heads = 2,
                            .feed_forward = 24},
                  .layers = 2,
                  .vocab = 9,
                  .length = kLength,
                  .classes = kClasses,
                  .seed = seed};
  return config;
}

std::vector<Chosen> all_states() {
  return {{"full"},
          {"linear"},
          {"performer", {{"features", 16}}},
          {"conv"},
          {"window_mlp"},
          {"truncated", {{"window", 3}}},
          {"recurrent"},
          {"mean"},
          {"gla", {{"gate_rank", 4}}},
          {"mamba2"},
          {"kda", {{"gate_rank", 4}}},
          // Channel mixing holds the row before; the unit has no feed-forward.
          {"rwkv6[block=paper]"},
          {"rwkv7[block=paper]"},
          {"gau[block=paper]"}};
}

Batch sources() {
  Rng random = rng(4, "greedy_test");
  Batch batch{.size = kSize, .length = kLength, .lengths = {12, 1, 7, 12, 4}};
  for (int64_t i = 0; i < kSize * kLength; ++i)
    batch.tokens.push_back(static_cast<int32_t>(random.between(1, 8)));
  return batch;
}

Tensor weight(const EncoderDecoder& model, const std::string& name) {
  for (const Weight& weight : model.weights())
    if (weight.name == name) return weight.value.value();
  throw_error(name);
}

// A head that is not shy: outputs of many different tokens, of which some end.
void sharpen(const EncoderDecoder& model) {
  for (real& x : weight(model, "decoder.head").values()) x *= 20;
}

TEST(Greedy, AStepGivesTheLogitsOfThePrefix) {
  for (const Chosen& chosen : all_states()) {
    const EncoderDecoder model(config_of(chosen));
    ASSERT_TRUE(model.has_states()) << chosen.name;
    const EncoderDecoder::Memory memory = model.encode(sources());
    Rng random = rng(5, "greedy_test");
    std::vector<int32_t> inputs(kSize * (kOutputs + 1));
    for (int32_t& token : inputs) token = static_cast<int32_t>(random.below(kClasses + 2));
    const Tensor expected = model.decode(memory, inputs).value();
    EncoderDecoder::States states = model.start(memory, kOutputs);
    for (int64_t i = 0; i <= kOutputs; ++i) {
      std::vector<int32_t> tokens;
      for (int64_t b = 0; b < kSize; ++b)
        tokens.push_back(inputs[static_cast<size_t>(b * (kOutputs + 1) + i)]);
      const Tensor logits = model.step(memory, states, tokens);
      ASSERT_EQ(logits.shape(), (Shape{kSize, kClasses + 1}));
      for (int64_t b = 0; b < kSize; ++b)
        for (int64_t c = 0; c <= kClasses; ++c)  // a thousand roundings of numbers of size 3
          EXPECT_NEAR(logits[b * (kClasses + 1) + c],
                      expected[(b * (kOutputs + 1) + i) * (kClasses + 1) + c],
                      3000 * static_cast<double>(kEpsilon))
              << chosen.name << " " << i << " " << b;
    }
  }
}

TEST(Greedy, StatesChooseTheTokensThatPrefixesChoose) {
  for (const Chosen& chosen : all_states()) {
    size_t ended = 0, tokens = 0;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const EncoderDecoder model(config_of(chosen, seed));
      sharpen(model);
      const EncoderDecoder::Memory memory = model.encode(sources());
      const Outputs outputs = greedy(model, memory, DecodeBy::states);
      EXPECT_EQ(outputs, greedy(model, memory, DecodeBy::prefixes)) << chosen.name;
      for (const std::vector<int32_t>& output : outputs) {
        tokens += output.size();
        const auto end = std::find(output.begin(), output.end(), model.end_token());
        ended += end != output.end();
        // Nothing behind an end, and one token too many where there is none.
        EXPECT_EQ(output.size(), end == output.end()
                                     ? static_cast<size_t>(kOutputs + 1)
                                     : static_cast<size_t>(end - output.begin() + 1));
      }
    }
    EXPECT_GT(ended, 5u) << chosen.name;
    EXPECT_GT(tokens, 200u) << chosen.name;
  }
}

TEST(Greedy, StopsWhereItIsTold) {
  const EncoderDecoder model(config_of({"full"}));
  sharpen(model);
  const EncoderDecoder::Memory memory = model.encode(sources());
  constexpr int64_t kMost = 3;
  Outputs expected = greedy(model, memory, DecodeBy::states);
  for (std::vector<int32_t>& output : expected)
    output.resize(std::min(output.size(), static_cast<size_t>(kMost + 1)));
  for (const DecodeBy way : {DecodeBy::states, DecodeBy::prefixes})
    EXPECT_EQ(greedy(model, memory, way, kMost), expected);
  EXPECT_THROW(greedy(model, memory, DecodeBy::states, kOutputs + 1), Error);
}

// Decoding alone or beside others, with more padding or less, is the same.
TEST(Greedy, ASequenceDoesNotSeeItsNeighbours) {
  const EncoderDecoder model(config_of({"full"}));
  sharpen(model);
  const Batch all = sources();
  const Outputs together = greedy(model, model.encode(all), DecodeBy::states);
  for (size_t b = 0; b < kSize; ++b) {
    const auto from = all.tokens.begin() + static_cast<ptrdiff_t>(b * kLength);
    const Batch alone{.size = 1, .length = all.lengths[b], .tokens = {from, from + all.lengths[b]}};
    EXPECT_EQ(greedy(model, model.encode(alone), DecodeBy::states)[0], together[b]) << b;
  }
}

TEST(Greedy, WithoutStatesItComputesPrefixes) {
  const EncoderDecoder model(config_of({"full", {{"kernel", std::string("materialized")}}}));
  EXPECT_FALSE(model.has_states());
  EXPECT_FALSE(model.state_bytes(kLength, kOutputs));
  sharpen(model);
  const EncoderDecoder tiled(config_of({"full"}));
  sharpen(tiled);
  EXPECT_EQ(greedy(model, model.encode(sources()), DecodeBy::prefixes),
            greedy(tiled, tiled.encode(sources()), DecodeBy::states));
}

TEST(Greedy, StateBytesAreThoseHeld) {
  for (const Chosen& chosen : all_states()) {
    const EncoderDecoder model(config_of(chosen));
    const EncoderDecoder::Memory memory = model.encode(sources());
    for (const int64_t outputs : {kOutputs, kOutputs / 8}) {
      EncoderDecoder::States states = model.start(memory, outputs);
      model.step(memory, states, std::vector<int32_t>(kSize, 1));  // which a feed-forward holds
      int64_t held = 0;
      for (const DecoderLayer::State& layer : states.layers)
        held += layer.self->state_bytes() +
                ((layer.before.defined() ? layer.before.size() : 0) +
                 layer.memory.keys.value().size() + layer.memory.values.value().size()) *
                    static_cast<int64_t>(sizeof(real));
      EXPECT_EQ(model.state_bytes(kLength, outputs), held / kSize) << chosen.name << outputs;
    }
  }
}

TEST(Greedy, KeepsNothingOfItsSteps) {
  const EncoderDecoder model(config_of({"full"}));
  const EncoderDecoder::Memory memory = model.encode(sources());
  EncoderDecoder::States states = model.start(memory, kOutputs);
  const std::vector<int32_t> tokens(kSize, 1);
  model.step(memory, states, tokens);
  const int64_t before = memory_use().live_total;
  for (int64_t i = 1; i <= kOutputs; ++i) model.step(memory, states, tokens);
  EXPECT_EQ(memory_use().live_total, before);
}

// A linformer cannot be causal: `full` stands in the decoder, and decodes.
TEST(Greedy, AVariantThatCannotBeCausalDecodesByTheExactOne) {
  const EncoderDecoder model(config_of({"linformer", {{"rank", 4}}}));
  EXPECT_TRUE(model.has_states());
  const std::vector<std::string> places = model.places();
  EXPECT_EQ(std::count(places.begin(), places.end(), "decoder"), 0);
  EXPECT_EQ(std::count(places.begin(), places.end(), "cross"),
            find_variant("linformer").traits.rowwise);
  sharpen(model);
  const EncoderDecoder::Memory memory = model.encode(sources());
  EXPECT_EQ(greedy(model, memory, DecodeBy::states), greedy(model, memory, DecodeBy::prefixes));
}

}  // namespace
}  // namespace attn::greedy_test
