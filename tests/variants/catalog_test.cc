// The catalog of variants: names and texts, and the weights that each starts with.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/places.h"
#include "tests/plugins_on_disk.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::catalog_test {
namespace {

// Every variant of the folders is in the catalogue, and says of itself what the catalogue promises.

namespace fs = std::filesystem;

TEST(Catalog, ListsEveryVariantOfTheFolder) {
  std::set<std::string> listed;
  for (const VariantInfo& info : all_variants()) listed.insert(info.name);
  EXPECT_EQ(names_of(plugins_on_disk(source_folder() / "variants", "VariantInfo")), listed);
}

TEST(Catalog, AFamilyIsAFolder) {
  std::map<std::string, std::set<std::string>> families_in;  // by folder
  for (const std::string& plugin : plugins_on_disk(source_folder() / "variants", "VariantInfo")) {
    const size_t slash = plugin.rfind('/');
    ASSERT_NE(slash, std::string::npos) << plugin << " is in no family's folder";
    families_in[plugin.substr(0, slash)].insert(find_variant(plugin.substr(slash + 1)).family);
  }
  for (const auto& [folder, names] : families_in) EXPECT_EQ(names.size(), 1u) << folder;
}

TEST(Catalog, AFileThatIsNotListedIsFound) {
  const fs::path folder = fs::path(testing::TempDir()) / "catalog_test";
  fs::create_directories(folder / "family");
  std::ofstream(folder / "family/own.cc") << "namespace attn {\nVariantInfo own() {\n";
  std::ofstream(folder / "family/engine.cc") << "namespace attn {\nint engine() {\n";
  EXPECT_EQ(plugins_on_disk(folder, "VariantInfo"), std::set<std::string>{"family/own"});
  fs::remove_all(folder);
}

TEST(Catalog, IsCompleteAndConsistent) {
  std::set<std::string> names;
  for (const VariantInfo& info : all_variants()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.summary.empty() || info.paper.empty() || info.cost_formula.empty())
        << info.name;
    EXPECT_TRUE(info.make) << info.name;
    EXPECT_EQ(std::count(families().begin(), families().end(), info.family), 1) << info.name;
    EXPECT_EQ(&find_variant(info.name), &info);
  }
  EXPECT_TRUE(says(fault_of([&] { find_variant("linfromer"); }), "'linformer'"));
}

// What is wrong with a copy of `full` after the change; "": nothing would be.
std::string refusal(const std::function<void(VariantInfo&)>& change) {
  VariantInfo info = find_variant("full");
  info.name = "own";
  change(info);
  const size_t before = all_variants().size();
  try {
    add_variant(info, "0123456789abcdef");
  } catch (const Error& error) {
    EXPECT_EQ(all_variants().size(), before);
    return error.what();
  }
  return "";
}

TEST(Catalog, AVariantOfAPluginThatDoesNotFitIsRefused) {
  const auto expect_said = [](const std::string& text, const char* word) {
    EXPECT_TRUE(says(text, word));
  };
  expect_said(refusal([](VariantInfo& info) { info.name = "linear"; }), "'linear' already");
  for (const std::string name : {"", "Own", "9th", "own-one", "own.so"})
    expect_said(refusal([&](VariantInfo& info) { info.name = name; }), "small letter");
  expect_said(refusal([](VariantInfo& info) { info.family = "patern"; }), "'pattern'");
  expect_said(refusal([](VariantInfo& info) { info.make = nullptr; }), "make");
  expect_said(refusal([](VariantInfo& info) { info.name = "python_own"; }), "in Python");
  expect_said(refusal([](VariantInfo& info) { info.family = kPythonFamily; }), "in Python");
  EXPECT_EQ(variant_plugin("full"), "");
  EXPECT_EQ(variant_named("own"), nullptr);
  EXPECT_EQ(variant_named("full"), &find_variant("full"));
}

// The weights that a variant starts with: normal numbers of the variance that its paper or its
// notes give, and biases. The contract cannot know these: a variant is right with any weights.

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
}  // namespace attn::catalog_test
