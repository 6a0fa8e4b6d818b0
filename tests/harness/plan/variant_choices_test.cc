// Variants with values to choose from, and what else a model is tested on.
#include <gtest/gtest.h>

#include <set>

#include "core/base/check.h"
#include "harness/cell/codec.h"
#include "harness/cell/source_hash.h"
#include "harness/plan/profiles.h"
#include "harness/plan/variant_choices.h"
#include "tests/harness/plan/planned.h"
#include "tests/harness/run/fake_cell.h"
#include "variants/api/stack.h"
#include "variants/catalog.h"
#include "tests/said.h"

namespace attn::variant_choices_test {
namespace {

// Stacks of several variants in plans: how they are written, which cells they make, what is
// refused, and that layers which are all equal are the plain variant.

SweepRequest of_model(std::vector<std::string> variants, const std::string& layers = "6") {
  return request_with(
      {{"scope", "model"}, {"length", "16"}, {"measure", "memory"}, {"layers", layers}},
      std::move(variants));
}

std::vector<std::string> names(const SweepRequest& request) {
  std::vector<std::string> all;
  for (const Cell& cell : plan(request).cells) all.push_back(cell.key.variant.name);
  return all;
}

TEST(Stack, HasOneNameHoweverItIsWritten) {
  const std::vector<std::string> one = {"full+2·linear"};
  for (const char* text : {"full+linear+linear", "full+2*linear", " full + 2·linear ",
                           "full+2*linear+full+linear+linear", "2*full+2*linear"}) {
    const bool other = std::string(text).starts_with("2*");
    EXPECT_EQ(names(of_model({text}, other ? "4" : "6")),
              other ? std::vector<std::string>{"2·full+2·linear"} : one)
        << text;
  }
  EXPECT_EQ(names(of_model({"full+truncated[window=32]"})),
            std::vector<std::string>{"full+truncated[window=32]"});
  const Params defaults("truncated", find_variant("truncated").params);
  EXPECT_EQ(names(of_model({fmt::format("full+truncated[window={}]", defaults.integer("window"))})),
            std::vector<std::string>{"full+truncated"});
}

// The name in a row is all that a child process and a resumed sweep get.
TEST(Stack, IsFoundByItsName) {
  for (const char* name :
       {"full+2·linear", "full+truncated[window=32]", "2·truncated[window=32]+mean"}) {
    const VariantInfo& info = find_variant(name);
    EXPECT_EQ(info.name, name);
    EXPECT_EQ(&find_variant(info.name), &info);
    EXPECT_EQ(stack_name(info.layers), name);
  }
  EXPECT_EQ(find_variant("full+2·linear").layers.size(), 3U);
  EXPECT_EQ(&find_variant("full+full"), &find_variant("full"));
  EXPECT_EQ(variant_named("full+nothing"), nullptr);
}

// Arora et al. 2024: the name stands for the layers, and rows name these.
TEST(Stack, OfANameIsItsLayers) {
  const std::string layers = "base_conv+taylor[block=paper]+truncated+2·base_conv";
  EXPECT_EQ(names(of_model({"based"}, "5")), std::vector<std::string>{layers});
  EXPECT_EQ(&find_variant("based"), &find_variant(layers));
  EXPECT_EQ(find_variant("based").layers.size(), 5U);
  EXPECT_EQ(variant_named("based"), &find_variant(layers));
  EXPECT_EQ(plan(of_model({"based"}, "4")).cells.at(0).skip,
            layers + " repeats every 5 layers, and layers=4 is no multiple of 5");
}

TEST(Stack, OfEqualLayersIsThePlainCell) {
  for (const char* plain : {"full", "truncated[window=32]"}) {
    const std::string text(plain);
    EXPECT_EQ(ids(of_model({text + "+" + text})), ids(of_model({text}))) << text;
    EXPECT_EQ(ids(of_model({"3*" + text})), ids(of_model({text}))) << text;
  }
}

// Ids are those of the version before the axis, of sources that no version has.
TEST(Stack, TwoLayersAreTheModelsOfBefore) {
  const auto of = [](std::map<std::string, std::string> more) {
    more.insert({{"scope", "model"}, {"length", "16"}});
    return request_with(std::move(more), {"full"});
  };
  CellKey key = plan(of({})).cells.at(0).key;
  EXPECT_FALSE(key.axes.layers);
  EXPECT_EQ(ids(of({{"layers", "2"}})), ids(of({})));
  EXPECT_NE(ids(of({{"layers", "3"}})), ids(of({})));
  EXPECT_FALSE(says(to_json(key.axes).dump(), "layers"));
}

TEST(Stack, ValuesOfALayersParameterAreStacksOfTheirOwn) {
  EXPECT_EQ(
      names(of_model({"full+2*truncated[window=[32,16]]"})),
      (std::vector<std::string>{"full+2·truncated[window=32]", "full+2·truncated[window=16]"}));
  EXPECT_EQ(names(of_model({"full+truncated[window=[32,16]]+mean"})).size(), 2U);
}

TEST(Stack, IsSkippedWithTheReason) {
  const auto reasons = [](const SweepRequest& request) {
    std::set<std::string> all;
    for (const Cell& cell : plan(request).cells) all.insert(cell.skip);
    return all;
  };
  EXPECT_EQ(reasons(of_model({"full+2*linear"}, "4")),
            std::set<std::string>{
                "full+2·linear repeats every 3 layers, and layers=4 is no multiple of 3"});
  EXPECT_EQ(reasons(request_with({{"length", "16"}}, {"full+linear"})),
            std::set<std::string>{"a stack of layers is measured at scope model alone"});
  EXPECT_EQ(reasons(request_with({{"scope", "model"}, {"length", "16"}, {"causal", "true"}},
                                 {"full+linformer"})),
            std::set<std::string>{"linformer: cannot be causal"});
  SweepRequest training = request_with({{"measure", "accuracy"}}, {"full+2*linear", "full+linear"});
  training.tasks = {"mqar"};
  EXPECT_EQ(reasons(training),
            (std::set<std::string>{
                "", "full+2·linear repeats every 3 layers, and layers=2 is no multiple of 3"}));
}

TEST(Stack, ThatIsWrittenWrongIsOneLine) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"full+", "'full+' has a layer without a variant; write full+linear"},
           {"full+liner", "unknown variant 'liner'; nearest is 'linear'"},
           {"full+mqar", "'mqar' is a task, not a variant: use -t mqar"},
           {"full+0*linear",
            "'full+0*linear': '0*linear' repeats a layer; a number from 1 to 64 does"},
           {"full+truncated[width=3]", "truncated: unknown parameter 'width'"},
           {"full+2*3*linear", "'3*linear' is no spec"}}) {
    const std::string found = error_of(of_model({text}));
    EXPECT_TRUE(says(found, said)) << text << ": " << found;
    EXPECT_FALSE(says(found, "\n"));
  }
  const std::string idle = error_of(request_with({{"layers", "4"}}, {"full"}));
  EXPECT_EQ(idle, "axis layers=4 applies to scope model alone, and the scope is attention");
  const SweepRequest beside_reach =
      request_with({{"layers", "4"}, {"length", "16"}, {"measure", "speed,reach"}}, {"full"});
  EXPECT_EQ(error_of(beside_reach), "") << "reach takes it";
}

// What a stack's figures depend on is what those of its layers depend on.
TEST(Stack, HasTheSourcesAndTheFamilyOfItsOwn) {
  const Plan found = plan(of_model({"full+linear", "full", "linear"}));
  std::set<std::string> sources;
  for (const Cell& cell : found.cells) sources.insert(cell.key.source.variant);
  EXPECT_EQ(sources.size(), 3U);
  EXPECT_FALSE(sources.count(""));
  EXPECT_EQ(variants_of(found.cells[0].key),
            (std::vector<Plugin>{{"full", Params("full", find_variant("full").params)},
                                 {"linear", Params("linear", find_variant("linear").params)}}));
}

// Parameters of the task to score learned weights on, in plans: what they stand for, which cells
// they make, and what is wrong with them.

// A plan of the request is an Error of one line that says so.
void expect_error(const SweepRequest& request, const std::string& what) {
  const std::string found = error_of(request);
  EXPECT_TRUE(says(found, what));
  EXPECT_FALSE(says(found, "\n"));
}

SweepRequest tested_on(const std::string& text, const std::string& task = "induction[length=16]") {
  SweepRequest request = request_with({{"measure", "accuracy"}}, {"full"});
  request.tasks = {task};
  request.training = "positions=none";
  request.test_on = text;
  return request;
}

TEST(TestOn, GridsStandOnTheParametersOfTheTask) {
  const std::string rest = ",min_length=0,symbols=18,train_examples=100000";
  EXPECT_EQ(texts_on(tested_on("length=[32,64];length=8,min_length=4")),
            (std::vector<std::string>{"length=32" + rest, "length=64" + rest,
                                      "length=8,min_length=4,symbols=18,train_examples=100000"}));
}

TEST(TestOn, ACellWithoutThemKeepsItsId) {
  const Cell plain = plan(tested_on("")).cells.at(0), on = plan(tested_on("length=64")).cells.at(0);
  EXPECT_FALSE(says(to_json(plain.key).dump(), "test_on"));
  EXPECT_FALSE(says(to_json(plan(tested_on("")).config).dump(), "test_on"));
  EXPECT_NE(plain.id, on.id);
  CellKey key = on.key;
  key.test_on.clear();
  EXPECT_EQ(id_of(key), plain.id);
}

// Longer tests take longer; where positions end there are none, and nothing to wait for.
TEST(TestOn, ForecastsKnowTheLengths) {
  const auto seconds = [](const std::string& text, const std::string& positions) {
    SweepRequest request = tested_on(text);
    request.training = "positions=" + positions;
    return plan(request).cells.at(0).forecast_s;
  };
  EXPECT_GT(seconds("length=64", "none"), seconds("length=16", "none"));
  EXPECT_GT(seconds("length=16", "none"), seconds("", "none"));
  EXPECT_EQ(seconds("length=64", "learned"), seconds("", "learned"));
  EXPECT_GT(seconds("length=8", "learned"), seconds("", "learned"));
}

TEST(TestOn, ASweepFileNamesThemAndFlagsWin) {
  SweepRequest request;
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", R"(
[defaults.accuracy]
test_on = "length=8"

[[sweep]]
variants = ["full"]
tasks = ["induction[length=16]"]
test_on = ["length=32", "length=64"]
)"));
  EXPECT_EQ(texts_on(request).size(), 2U);
  request.test_on = "length=24";
  EXPECT_EQ(texts_on(request),
            std::vector<std::string>{"length=24,min_length=0,symbols=18,train_examples=100000"});
}

TEST(TestOn, WhatIsWrongIsNamed) {
  expect_error(tested_on("lenght=32"), "length");
  expect_error(tested_on("length=0"), "length");
  expect_error(tested_on("length=32", "image"), "length");
  expect_error(tested_on("length=32;;length=64"),
               "test_on 'length=32;;length=64' has an empty part");
  SweepRequest timed = request_with({{"measure", "speed"}}, {"full"});
  timed.test_on = "length=32";
  expect_error(timed, "test_on 'length=32' does not apply to measure speed");
}

// Parameters to score learned weights with, in plans: what they stand for, which cells they make,
// and what is wrong with them.

SweepRequest tested_with(const std::string& text,
                         const std::string& variant = "reformer[chunk=16]") {
  SweepRequest request = request_with({{"measure", "accuracy"}}, {variant});
  request.tasks = {"copy[length=16]"};
  request.test_with = text;
  return request;
}

TEST(TestWith, GridsStandOnTheParametersOfTheTraining) {
  const std::string rest = "as=paper,buckets=0,chunk=16,";
  EXPECT_EQ(texts_with(tested_with("rounds=[1,2];rounds=8,chunk=32")),
            (std::vector<std::string>{rest + "rounds=1", rest + "rounds=2",
                                      "as=paper,buckets=0,chunk=32,rounds=8"}));
}

// So does the row of a cell that is scored with nothing else.
TEST(TestWith, ACellWithoutThemKeepsItsId) {
  const Cell plain = plan(tested_with("")).cells.at(0),
             with = plan(tested_with("rounds=1")).cells.at(0);
  EXPECT_FALSE(says(to_json(plain.key).dump(), "test_with"));
  EXPECT_FALSE(says(to_json(plan(tested_with("")).config).dump(), "test_with"));
  EXPECT_NE(plain.id, with.id);
  EXPECT_GT(with.forecast_s, plain.forecast_s) << "its scores take time";
  CellKey key = with.key;
  key.test_with.clear();
  EXPECT_EQ(id_of(key), plain.id);
}

TEST(TestWith, ASweepFileNamesThemAndFlagsWin) {
  SweepRequest request;
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", R"(
[[sweep]]
measure = "accuracy"
variants = ["reformer[chunk=16]"]
tasks = ["copy[length=16]"]
test_with = ["rounds=1", "rounds=8"]
)"));
  EXPECT_EQ(texts_with(request).size(), 2U);
  request.test_with = "rounds=2";
  EXPECT_EQ(texts_with(request), std::vector<std::string>{"as=paper,buckets=0,chunk=16,rounds=2"});
}

TEST(TestWith, WhatIsWrongIsNamed) {
  expect_error(tested_with("round=1"), "rounds");
  expect_error(tested_with("rounds=0"), "rounds");
  expect_error(tested_with("rounds=1", "full"), "rounds");
  expect_error(tested_with("rounds=1;;rounds=2"), "empty part");
  SweepRequest timed = request_with({{"measure", "speed"}}, {"reformer"});
  timed.test_with = "rounds=1";
  expect_error(timed, "test_with 'rounds=1' does not apply to measure speed");
}

// The layers of papers: --block, and the parameter of that name.

SweepRequest in_blocks(const std::string& block, const std::vector<std::string>& variants,
                       const std::string& scope = "layer") {
  SweepRequest request =
      request_with({{"scope", scope}, {"length", "16"}, {"causal", "true"}}, variants);
  request.block = block;
  return request;
}

std::vector<std::string> texts(const SweepRequest& request) {
  std::vector<std::string> all;
  for (const Cell& cell : plan(request).cells) all.push_back(plugin_text(cell.key.variant));
  return all;
}

TEST(Blocks, AreAParameterOfVariantsThatHaveOne) {
  const std::vector<std::string> both = {"deltanet", "deltanet[block=paper]"};
  EXPECT_EQ(texts(in_blocks("mixer,paper", {"deltanet"})), both);
  EXPECT_EQ(texts(in_blocks("", {"deltanet[block=[mixer,paper]]"})), both);
  // The flag leaves what a variant says itself, and variants whose paper has the plain layer.
  EXPECT_EQ(texts(in_blocks("paper", {"deltanet[block=mixer]"})), std::vector{both[0]});
  EXPECT_EQ(texts(in_blocks("mixer,paper", {"full"})),
            std::vector<std::string>{"full[kernel=tiled]"});
  // A parameter of the variant's own has that name.
  EXPECT_EQ(ids(in_blocks("mixer,paper", {"local"})), ids(in_blocks("", {"local"})));
  // A cell that says mixer is the one that says nothing.
  EXPECT_EQ(ids(in_blocks("mixer", {"deltanet"})), ids(in_blocks("", {"deltanet"})));
  expect_error(in_blocks("layer", {"deltanet"}), "--block layer is not valid; mixer or paper");
  expect_error(in_blocks("", {"deltanet[block=layer]"}),
               "block=layer is not valid; mixer or paper");
}

TEST(Blocks, AreOfLayersAndStacks) {
  EXPECT_EQ(names(in_blocks("paper", {"full+deltanet"}, "model")),
            std::vector<std::string>{"full+deltanet[block=paper]"});
  EXPECT_EQ(source_hash("variants", "full+deltanet[block=paper]"),
            source_hash("variants", "full+deltanet"));
  const auto skipped = [](const SweepRequest& request) { return plan(request).cells.at(0).skip; };
  EXPECT_EQ(skipped(in_blocks("paper", {"deltanet"})), "");
  EXPECT_NE(skipped(in_blocks("paper", {"deltanet"}, "attention")).find("--scope layer"),
            std::string::npos);
  EXPECT_EQ(skipped(in_blocks("paper", {"rwkv7"})), "");
  SweepRequest distance = request_with(
      {{"measure", "fidelity"}, {"length", "16"}, {"causal", "true"}}, {"deltanet[block=paper]"});
  EXPECT_NE(skipped(distance).find("leave block out"), std::string::npos);
}

}  // namespace
}  // namespace attn::variant_choices_test
