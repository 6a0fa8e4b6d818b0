// Stacks of several variants in plans: how they are written, which cells they make, what is
// refused, and that layers which are all equal are the plain variant.
#include "harness/plan/variant_choices.h"

#include <gtest/gtest.h>

#include <set>

#include "core/base/check.h"
#include "tests/harness/plan/planned.h"
#include "tests/harness/run/fake_cell.h"
#include "variants/api/stack.h"
#include "variants/catalog.h"

namespace attn::variant_choices_test {
namespace {

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
  EXPECT_EQ(to_json(key.axes).dump().find("layers"), std::string::npos);
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
    EXPECT_NE(found.find(said), std::string::npos) << text << ": " << found;
    EXPECT_EQ(found.find('\n'), std::string::npos);
  }
  const std::string idle = error_of(request_with({{"layers", "4"}}, {"full"}));
  EXPECT_EQ(idle, "axis layers=4 applies to scope model alone, and the scope is attention");
  const SweepRequest beside_reach =
      request_with({{"layers", "4"}, {"length", "16"}, {"measure", "speed,reach"}}, {"full"});
  EXPECT_EQ(error_of(beside_reach), "no error") << "reach takes it";
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

}  // namespace
}  // namespace attn::variant_choices_test
