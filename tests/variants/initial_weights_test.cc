// The weights that a variant starts with: normal numbers of the variance that its paper or its
// notes give, and biases. The contract cannot know these: a variant is right with any weights.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "variants/catalog.h"

namespace attn::initial_weights_test {
namespace {

constexpr int64_t kHeads = 2, kDim = 32, kLongest = 200, kWidth = kHeads * kDim;

std::vector<Weight> weights_of(const std::string& name,
                               const std::map<std::string, ParamValue>& given) {
  return find_variant(name)
      .build({.heads = kHeads,
              .head_dim = kDim,
              .max_len = kLongest,
              .causal = false,
              .seed = 3,
              .params = {}},
             given)
      ->weights();
}

struct Start {
  const char* variant;
  std::map<std::string, ParamValue> given;
  std::map<std::string, double> variances;  // by the name of the weight; not those of biases
};

std::vector<Start> starts() {
  const auto whole = [](int64_t x) { return ParamValue(x); };
  const auto kind = [](const char* name) {
    return std::map<std::string, ParamValue>{{"kind", std::string(name)}};
  };
  return {{"linformer", {}, {{"projection_k", 1.0 / kLongest}, {"projection_v", 1.0 / kLongest}}},
          {"linformer",
           {{"share_kv", true}, {"share_heads", false}},
           {{"projection_k", 1.0 / kLongest}}},
          {"performer", {{"features", whole(512)}}, {{"omega", 1}}},
          {"performer", {{"features", whole(512)}, {"orthogonal", false}}, {{"omega", 1}}},
          {"reformer", {}, {{"rotations", 1}}},
          {"additive",  // Glorot's, of `units` and head_dim numbers, and of `units` and one
           {{"units", whole(500)}},
           {{"W_q", 2.0 / (kDim + 500)}, {"W_k", 2.0 / (kDim + 500)}, {"w", 2.0 / 501}}},
          {"sinkhorn", {{"block", whole(4)}}, {{"sort", 2.0 / (kDim + kLongest / 4)}}},
          {"conv", {{"kernel", whole(3)}}, {{"weight", 1.0 / (3 * kWidth)}}},
          {"window_mlp",
           {{"window", whole(1)}, {"hidden", whole(20)}},
           {{"hidden", 1.0 / (3 * kWidth)}, {"output", 1.0 / 20}}},
          // Of uniform numbers in ±1/√dim; two directions have half of the width each.
          {"recurrent", {}, {{"input", 1.0 / (3 * kWidth)}, {"state", 1.0 / (3 * kWidth)}}},
          {"recurrent",
           {{"cell", std::string("gru")}, {"directions", std::string("both")}},
           {{"input", 2.0 / (3 * kWidth)},
            {"state", 2.0 / (3 * kWidth)},
            {"reverse_input", 2.0 / (3 * kWidth)},
            {"reverse_state", 2.0 / (3 * kWidth)}}},
          {"s4d", {{"states", whole(1024)}}, {{"C_real", 0.5}, {"C_imag", 0.5}}},
          {"lru", {}, {{"B", 1.0 / (2 * kWidth)}, {"C", 1.0 / kWidth}}},
          {"synthesizer", kind("dense"), {{"keys", 1.0 / kDim}}},
          {"synthesizer", kind("random"), {{"logits", 1}}},
          {"synthesizer", {{"as", std::string("lra")}}, {{"logits", 1.0 / (kHeads * kLongest)}}},
          {"synthesizer",  // Σ over the rank of left·right has variance 1
           {{"kind", std::string("factorized_random")}, {"rank", whole(9)}},
           {{"left", 1.0 / 3}, {"right", 1.0 / 3}}},
          {"synthesizer", kind("factorized_dense"), {{"left", 1.0 / kDim}, {"right", 1.0 / kDim}}}};
}

TEST(InitialWeights, HaveTheirVariance) {
  for (const Start& start : starts()) {
    size_t seen = 0;
    for (const Weight& weight : weights_of(start.variant, start.given)) {
      const auto wanted = start.variances.find(weight.name);
      if (wanted == start.variances.end()) continue;
      seen++;
      const auto n = static_cast<double>(weight.value.shape().size());
      ASSERT_GE(n, 700) << start.variant << ' ' << weight.name;
      double sum = 0, squares = 0;
      for (const real x : weight.value.value().values()) {
        sum += static_cast<double>(x);
        squares += static_cast<double>(x) * static_cast<double>(x);
      }
      // Five deviations of the estimates. Orthogonal rows, which are not independent, have less.
      EXPECT_NEAR(squares / n / wanted->second, 1, 5 * std::sqrt(2 / n))
          << start.variant << ' ' << weight.name;
      EXPECT_NEAR(sum / n, 0, 5 * std::sqrt(wanted->second / n))
          << start.variant << ' ' << weight.name;
    }
    EXPECT_EQ(seen, start.variances.size()) << start.variant;
  }
}

// Zero, but for ones at the forget gate of an LSTM.
TEST(InitialWeights, BiasesAreZerosOrOpenTheForgetGate) {
  for (const char* name : {"conv", "window_mlp", "recurrent"})
    for (const Weight& weight : weights_of(name, {})) {
      if (weight.name.find("bias") == std::string::npos) continue;
      const bool gates = weight.name == "bias" && weight.value.shape().size() == 4 * kWidth;
      for (int64_t i = 0; i < weight.value.shape().size(); i++)
        EXPECT_EQ(weight.value.value()[i], real(gates && i / kWidth == 1)) << name << ' ' << i;
    }
}

// Other weights of one variant, and the same weight of another seed, are other numbers.
TEST(InitialWeights, AreDrawnByNameAndSeed) {
  const auto first = [](const Weight& weight) { return weight.value.value()[0]; };
  const auto both = weights_of("linformer", {});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_NE(first(both[0]), first(both[1]));
  EXPECT_EQ(first(both[0]), first(weights_of("linformer", {})[0]));
}

}  // namespace
}  // namespace attn::initial_weights_test
