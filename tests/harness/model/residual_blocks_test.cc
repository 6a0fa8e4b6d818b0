// What an attention block makes of keys shared by several heads and of rotary positions: against
// the same written out, against repeated weights, and one position after the other.
#include "harness/model/residual_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/ops/ops.h"
#include "harness/model/encoder_decoder.h"
#include "harness/train/train.h"
#include "tests/harness/train/toy.h"
#include "variants/reference/scores.h"
#include "tests/variants/oracle_bridge.h"
#include "variants/catalog.h"

namespace attn::residual_blocks_test {
namespace {

constexpr int64_t kWidth = 24, kHeads = 4, kHeadDim = kWidth / kHeads, kLength = 9;

LayerConfig config_of(const std::string& variant, int64_t kv_heads, bool rotary) {
  return {.variant = &find_variant(variant),
          .width = kWidth,
          .heads = kHeads,
          .kv_heads = kv_heads,
          .rotary = rotary,
          .feed_forward = 8,
          .max_len = kLength,
          .norm = Norm::post,
          .seed = 5};
}

std::map<std::string, Tensor> named(const std::vector<Weight>& weights) {
  std::map<std::string, Tensor> all;
  for (const Weight& weight : weights) all[weight.name] = weight.value.value();
  return all;
}

// x·W, head h of the result being that of the weight's head h / times.
oracle::Array projected(const Tensor& x, const Tensor& weight, int64_t times) {
  oracle::Array out(x.dim(0), kHeads, x.dim(1), kHeadDim);
  for (int64_t i = 0; i < static_cast<int64_t>(out.x.size()); ++i) {
    const int64_t c = i % kHeadDim, row = i / kHeadDim % x.dim(1), h = i / kHeadDim / x.dim(1);
    const int64_t column = h % kHeads / times * kHeadDim + c;
    for (int64_t w = 0; w < kWidth; ++w)
      out.x[static_cast<size_t>(i)] +=
          static_cast<double>(x[(h / kHeads * x.dim(1) + row) * kWidth + w]) *
          static_cast<double>(weight[w * weight.dim(1) + column]);
  }
  return out;
}

TEST(AttentionBlock, SharedKeysAndRotaryPositionsEqualTheirEquations) {
  for (const int64_t kv_heads : {0, 1, 2, 4})
    for (const bool rotary : {false, true}) {
      const AttentionBlock block(config_of("full", kv_heads, rotary), "");
      const auto weights = named(block.weights());
      const int64_t times = kv_heads == 0 ? 1 : kHeads / kv_heads;
      EXPECT_EQ(weights.at("W_q").shape(), (Shape{kWidth, kWidth}));
      EXPECT_EQ(weights.at("W_k").shape(), (Shape{kWidth, kWidth / times}));
      EXPECT_EQ(weights.at("W_v").shape(), (Shape{kWidth, kWidth / times}));
      const Tensor x = bridge::normal({2, kLength, kWidth}, "x");
      oracle::Array q = projected(x, weights.at("W_q"), 1),
                    k = projected(x, weights.at("W_k"), times);
      if (rotary) q = oracle::rotated(q, 0), k = oracle::rotated(k, 0);
      const oracle::Array found = oracle::softmax_attention(
          q, k, projected(x, weights.at("W_v"), times), {.lengths = {kLength, 4}});
      const Tensor merged({2, kLength, kWidth});
      for (int64_t i = 0; i < merged.size(); ++i)
        merged[i] = static_cast<real>(found.at(i / kWidth / kLength, i % kWidth / kHeadDim,
                                               i / kWidth % kLength, i % kHeadDim));
      const NoGrad no_grad;
      const Var rows = matmul(Var(merged.reshaped({2 * kLength, kWidth})), Var(weights.at("W_o")));
      const Var want = layer_norm(add(Var(x), reshape(rows, x.shape())),
                                  Var(Tensor::full({kWidth}, 1)), Var(Tensor::zeros({kWidth})));
      const Tensor got = block.forward(Var(x), {}, {false, {kLength, 4}}, nullptr).value();
      EXPECT_TRUE(bridge::relative_error(
                      got, bridge::array_of(want.value().reshaped({1, 2, kLength, kWidth})).x) <=
                  100 * kEpsilon)
          << kv_heads << " " << rotary;
    }
}

// Learned ballast would count as parameters and FLOPs, and flatter whoever goes without.
TEST(AttentionBlock, LearnsNothingThatMovesNothing) {
  for (const VariantInfo& info : all_variants())
    for (const std::string& kind : info.name == "synthesizer"
                                       ? std::vector<std::string>{"dense", "random"}
                                       : std::vector<std::string>{""}) {
      LayerConfig config = config_of(info.name, 0, false);
      config.max_len = 130;  // more than one block of each pattern
      if (!kind.empty()) config.variant_params = {{"kind", kind}};
      const AttentionBlock block(config, "");
      const Var x(bridge::normal({1, 130, kWidth}, "x"), true);
      block.forward(x, {}, {}, nullptr).backward(bridge::normal({1, 130, kWidth}, "seed"));
      for (const Weight& weight : block.weights()) {
        if (!weight.learned) continue;
        const std::vector<real> grad(weight.value.grad().values().begin(),
                                     weight.value.grad().values().end());
        EXPECT_TRUE(std::any_of(grad.begin(), grad.end(), [](real g) { return g != 0; }))
            << info.name << " " << kind << " " << weight.name;
      }
      const auto weights = named(block.weights());
      const VariantInfo::Reads read = info.read_by(block.attention().config().params);
      EXPECT_EQ(weights.count("W_q") == 1, read.queries) << info.name;
      EXPECT_EQ(weights.count("W_k") == 1, read.keys) << info.name;
    }
}

// Of every variant, and of the layer of its paper: forward() is the rows, and bare() of their norm.
TEST(AttentionBlock, BareIsForwardWithoutNormAndResidual) {
  const auto compare = [](const VariantInfo& info) {
    const AttentionShape shape = {2, kHeads, kLength, kLength, kHeadDim, info.lacks_causal({})};
    if (info.why_not(shape, Params(info.name, info.params, {}))) return false;
    LayerConfig config = config_of("full", 0, false);
    config.variant = &info, config.norm = Norm::pre, config.causal = shape.causal;
    const AttentionBlock block(config, "");
    const NoGrad no_grad;
    const Var x(bridge::normal({2, kLength, kWidth}, "x"));
    const Mask mask = {shape.causal, {kLength, 4}};
    const Var normed = layer_norm(x, Var(Tensor::full({kWidth}, 1)), Var(Tensor::zeros({kWidth})));
    const Tensor want = add(x, block.bare(normed, mask)).value();
    const Tensor got = block.forward(x, {}, mask, nullptr).value();
    EXPECT_TRUE(
        bridge::relative_error(got, bridge::array_of(want.reshaped({1, 2, kLength, kWidth})).x) <=
        100 * kEpsilon)
        << info.name;
    EXPECT_EQ(block.bare_weights().size() + 2, block.weights().size()) << info.name;
    const auto all = named(block.weights());
    for (const Weight& weight : block.bare_weights()) {
      const bool is_own = weight.name.starts_with("mixer.") && !info.traits.mixer;
      const std::string name = is_own              ? "attention." + weight.name.substr(6)
                               : info.traits.mixer ? "attention." + weight.name
                                                   : weight.name;
      EXPECT_TRUE(all.contains(name)) << info.name << " " << weight.name;
    }
    return true;
  };
  int papers = 0;
  for (const VariantInfo& info : all_variants()) {
    compare(info);
    if (info.has_paper_layer() && compare(with_paper_block(info))) ++papers;
  }
  EXPECT_GE(papers, 15);
}

TEST(AttentionBlock, RefusesHeadsThatDoNotDivide) {
  EXPECT_THROW(AttentionBlock(config_of("full", 3, false), ""), Error);
  EXPECT_THROW(AttentionBlock(config_of("full", 8, false), ""), Error);
  EXPECT_THROW(AttentionBlock(config_of("mean", 2, false), ""), Error);
  EXPECT_THROW(AttentionBlock(config_of("mean", 0, true), ""), Error);
}

// Each step is a position later than the one before, in every layer, and the cross-attention of
// shared keys finds what the forward finds.
TEST(AttentionBlock, StepsWithRotaryPositionsEqualThePrefix) {
  constexpr int64_t kOutputs = 12, kSize = 3;
  for (const std::string variant :
       {"full", "relu", "additive", "linear", "performer", "sparse", "reformer", "synthesizer"}) {
    EncoderDecoderConfig config{.outputs = kOutputs, .exact = &find_variant("full")};
    config.model = {.layer = config_of(variant, 2, false),
                    .layers = 2,
                    .vocab = 9,
                    .length = kLength,
                    .classes = 6,
                    .positions = Positions::rotary,
                    .seed = 3};
    const EncoderDecoder model(config);
    Rng random = rng(4, "residual_blocks_test");
    Batch batch{.size = kSize, .length = kLength, .lengths = {9, 1, 7}};
    for (int64_t i = 0; i < kSize * kLength; ++i)
      batch.tokens.push_back(static_cast<int32_t>(random.between(1, 8)));
    const NoGrad no_grad;
    const EncoderDecoder::Memory memory = model.encode(batch);
    std::vector<int32_t> inputs;
    for (int64_t i = 0; i < kSize * (kOutputs + 1); ++i)
      inputs.push_back(static_cast<int32_t>(random.between(0, 5)));
    const Tensor all = model.decode(memory, inputs).value();  // [size, outputs + 1, classes + 1]
    EncoderDecoder::States states = model.start(memory, kOutputs);
    int64_t kept = 0;
    for (const DecoderLayer::State& layer : states.layers) {
      EXPECT_EQ(layer.memory.keys.shape(), (Shape{kSize, 2, kLength, kHeadDim}));
      kept += layer.self->state_bytes() +
              2 * layer.memory.keys.value().size() * static_cast<int64_t>(sizeof(real));
    }
    EXPECT_EQ(model.state_bytes(kLength, kOutputs), kept / kSize);
    if (variant == "full") {  // keys and values of both kinds of attention, two heads of four
      constexpr int64_t kRow = 2 * 2 * kHeadDim * static_cast<int64_t>(sizeof(real));
      EXPECT_EQ(kept, 2 * kSize * kRow * (kOutputs + 1 + kLength));
    }
    for (int64_t step = 0; step <= kOutputs; ++step) {
      std::vector<int32_t> tokens;
      for (int64_t b = 0; b < kSize; ++b)
        tokens.push_back(inputs[static_cast<size_t>(b * (kOutputs + 1) + step)]);
      const Tensor one = model.step(memory, states, tokens);
      for (int64_t i = 0; i < one.size(); ++i)
        ASSERT_NEAR(static_cast<double>(one[i]),
                    static_cast<double>(all[(i / 7 * (kOutputs + 1) + step) * 7 + i % 7]),
                    1000 * static_cast<double>(kEpsilon))
            << variant << " step " << step;
    }
  }
}

TEST(KvHeads, DivideTheStateOfACausalModel) {
  const auto bytes = [](const std::string& variant, int64_t kv_heads) {
    ModelConfig config{.layer = config_of(variant, kv_heads, false),
                       .layers = 3,
                       .vocab = 9,
                       .length = kLength,
                       .classes = 6,
                       .per_token = true};
    config.layer.causal = true;
    return Encoder(config).state_bytes(kLength).value();
  };
  EXPECT_EQ(bytes("full", 0), 3 * 2 * kLength * kWidth * static_cast<int64_t>(sizeof(real)));
  for (const char* variant : {"full", "linear", "truncated"}) {
    EXPECT_EQ(4 * bytes(variant, 1), bytes(variant, 0)) << variant;
    EXPECT_EQ(2 * bytes(variant, 2), bytes(variant, 0)) << variant;
  }
  EXPECT_EQ(bytes("additive", 1), bytes("additive", 0)) << "each head projects keys by itself";
}

TEST(KvHeads, AndRotaryPositionsAreSkippedWithAReason) {
  const toy::Made task({.length = 4, .vocab = 8, .classes = 2}, [](Split, int64_t) {
    return Example{.tokens = {1, 2, 3, 4}, .target = {1}};
  });
  const auto reason = [&](const std::string& variant,
                          const std::map<std::string, ParamValue>& given) {
    return why_not_trainable("made", task, find_variant(variant), {},
                             Params("training", training_params(), given))
        .value_or("");
  };
  EXPECT_EQ(reason("full", {{"kv_heads", int64_t{1}}, {"positions", std::string("rotary")}}), "");
  EXPECT_EQ(reason("full", {{"kv_heads", int64_t{4}}}), "heads 2 are not a multiple of kv_heads 4");
  EXPECT_EQ(reason("mean", {{"kv_heads", int64_t{1}}}),
            "mean has no keys that query heads could share (kv_heads)");
  EXPECT_EQ(reason("mean", {{"positions", std::string("rotary")}}),
            "mean has no queries and keys that rotary positions could turn");
  EXPECT_EQ(reason("mean", {}), "");
}

TEST(DistanceBias, IsOfVariantsThatTakeItAndSkippedWithAReasonElsewhere) {
  const toy::Made task({.length = 4, .vocab = 8, .classes = 2}, [](Split, int64_t) {
    return Example{.tokens = {1, 2, 3, 4}, .target = {1}};
  });
  const auto reason = [&](const std::string& variant, const std::string& positions) {
    return why_not_trainable("made", task, find_variant(variant), {},
                             Params("training", training_params(), {{"positions", positions}}))
        .value_or("");
  };
  for (const std::string positions : {"alibi", "t5", "kerple", "kerple_power"}) {
    EXPECT_EQ(reason("full", positions), "");
    EXPECT_EQ(reason("truncated", positions), "");
    EXPECT_EQ(reason("linear", positions),
              "linear takes no bias of distances: no positions " + positions);
  }
  EXPECT_EQ(reason("linear", "rotary"), "");
}

}  // namespace
}  // namespace attn::residual_blocks_test
