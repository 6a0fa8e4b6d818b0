// The grammar of SPEC, settings and ranges, and the rules of a sweep.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "core/base/check.h"
#include "harness/plan/grammar.h"
#include "harness/plan/profiles.h"
#include "harness/plan/rules.h"
#include "tests/said.h"

namespace attn::grammar_test {
namespace {

// The sweep grammar: what it accepts, how ranges expand, and that every error quotes the offending
// text.

using Values = std::vector<std::string>;

Values values(std::string_view text) { return expand_values("axis length", text); }

TEST(Grammar, ReadsANameAlone) {
  const Spec spec = parse_spec(" linear ");
  EXPECT_EQ(spec.name, "linear");
  EXPECT_TRUE(spec.settings.empty());
  EXPECT_TRUE(parse_spec("full[]").settings.empty());
}

TEST(Grammar, ReadsParametersListsAndRanges) {
  const Spec spec = parse_spec("listops[length=128:512:*2,max_depth=6, p=[0.5,1:2:+1]]");
  EXPECT_EQ(spec.name, "listops");
  ASSERT_EQ(spec.settings.size(), 3u);
  EXPECT_EQ(spec.settings[0].name, "length");
  EXPECT_EQ(spec.settings[0].values, (Values{"128", "256", "512"}));
  EXPECT_EQ(spec.settings[1].values, (Values{"6"}));
  EXPECT_EQ(spec.settings[2].name, "p");
  EXPECT_EQ(spec.settings[2].values, (Values{"0.5", "1", "2"}));
}

TEST(Grammar, ReadsAFileOfPythonAndANameInIt) {
  const Spec spec = parse_spec("python:../my own/a.b.py:Cosine[scale=[4,8]]");
  EXPECT_EQ(spec.name, "python:../my own/a.b.py:Cosine");
  ASSERT_EQ(spec.settings.size(), 1u);
  EXPECT_EQ(spec.settings[0].values, (Values{"4", "8"}));
  EXPECT_EQ(parse_spec("python:mine.py:softmax").name, "python:mine.py:softmax");
}

TEST(Grammar, RangesIncludeTheirEnds) {
  EXPECT_EQ(values("256:4096:*2"), (Values{"256", "512", "1024", "2048", "4096"}));
  EXPECT_EQ(values("1:10:+3"), (Values{"1", "4", "7", "10"}));
  EXPECT_EQ(values("1:9:+3"), (Values{"1", "4", "7"}));
  EXPECT_EQ(values("0.1:0.3:+0.1"), (Values{"0.1", "0.2", "0.3"}));
  EXPECT_EQ(values("0.5:4:*2"), (Values{"0.5", "1", "2", "4"}));
  EXPECT_EQ(values("7:7:*2"), (Values{"7"}));
  EXPECT_EQ(values("1048576:1048578:+1"), (Values{"1048576", "1048577", "1048578"}));
}

TEST(Grammar, ListsKeepTheirOrder) {
  EXPECT_EQ(values("8,2,4:8:*2"), (Values{"8", "2", "4", "8"}));
  EXPECT_EQ(values("[8,2]"), (Values{"8", "2"}));
  EXPECT_EQ(values("false,true"), (Values{"false", "true"}));
}

TEST(Grammar, ErrorsQuoteTheText) {
  const auto quotes = [](const std::string& text, const std::string& part,
                         const std::string& hint) {
    const std::string error = fault_of([&] { parse_spec(text); });
    EXPECT_TRUE(says(error, part));
    EXPECT_TRUE(says(error, hint));
    EXPECT_FALSE(says(error, "\n"));
  };
  quotes("linformer[rank=64,128]", "'128'", "param=[v,v]");
  quotes("linformer[rank=[64,128]", "'rank=[64,128'", "']'");
  quotes("linformer]", "']'", "after the name");
  quotes("linformer[rank=64]x", "'linformer[rank=64]x'", "does not end");
  quotes("[rank=64]", "'[rank=64]'", "begin with a name");
  quotes("", "''", "begin with a name");
  quotes("linformer[rank=]", "rank", "empty value");
  quotes("linformer[=64]", "'=64'", "param=value");
  quotes("linformer[rank=1,rank=2]", "'rank'", "twice");
  quotes("linformer[rank=a:b:*2]", "'a:b:*2'", "start with a number");
}

TEST(Grammar, RefusesRangesThatDoNotEnd) {
  for (const char* text : {"1:8", "1:8:2", "1:8:*", "1:8:*1", "0:8:*2", "1:8:+0", "8:1:*2",
                           "1:8:+-1", "1:x:+1", "1:8:*2:3", "1:1000000:+1", "nan:8:+1", "1:inf:*2"})
    EXPECT_TRUE(says(fault_of([&] { values(text); }), text)) << text;
  for (const char* text : {"", ",", "1,,2", "1,"}) EXPECT_THROW(values(text), Error) << text;
}

// Each would be held once for each of up to 20000 combinations.
TEST(Grammar, TooManyParametersAreAnError) {
  std::string text = "a0=1";
  for (int i = 1; i < 100; i++) text += fmt::format(",a{}=1", i);
  EXPECT_EQ(parse_settings(text).size(), 100u);
  EXPECT_TRUE(says(fault_of([&] { parse_settings(text + ",b=1"); }), "more than 100 parameters"));
}

TEST(Grammar, CrossProductVariesTheLastFastest) {
  const auto choices = cross_product({{"a", {"1", "2"}}, {"b", {"x", "y"}}});
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[1], (Choice{{"a", "1"}, {"b", "y"}}));
  EXPECT_EQ(choices[2], (Choice{{"a", "2"}, {"b", "x"}}));
  EXPECT_EQ(cross_product({}).size(), 1u);
}

TEST(Grammar, OverlayReplacesAndAdds) {
  const auto settings = overlay({{"a", {"1"}}, {"b", {"2"}}}, {{"b", {"3", "4"}}, {"c", {"5"}}});
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].values, (Values{"1"}));
  EXPECT_EQ(settings[1].values, (Values{"3", "4"}));
  EXPECT_EQ(settings[2].name, "c");
}

TEST(Grammar, TooManyCombinationsAreAnError) {
  const std::vector<Setting> settings = {{"length", values("1:1000:+1")},
                                         {"heads", values("1:1000:+1")}};
  EXPECT_EQ(fault_of([&] { cross_product(settings); }),
            "more than 20000 combinations with the 1000 values of heads; ask for fewer");
}

// zip, include and exclude, on the cells that a sweep file plans.

SweepRequest request_of(std::string_view text) {
  SweepRequest request;
  request.sweep_file = std::make_shared<const Profile>(read_profile("mine.toml", text));
  return request;
}

std::vector<Cell> cells_of(std::string_view text) { return plan(request_of(text)).cells; }

using Shape = std::vector<int64_t>;
std::vector<Shape> shapes_of(std::string_view text) {
  std::vector<Shape> shapes;
  for (const Cell& cell : cells_of(text)) {
    const Axes& axes = cell.key.axes;
    shapes.push_back({*axes.length, *axes.heads, *axes.head_dim});
  }
  return shapes;
}

TEST(Rules, AxesOfAZipGoInStepBesideTheCrossProduct) {
  EXPECT_EQ(shapes_of("[[sweep]]\nvariants = 'full'\naxes = { length = [64, 128], heads = [1, 2], "
                      "head_dim = [32, 16] }\nzip = ['heads', 'head_dim']"),
            (std::vector<Shape>{{64, 1, 32}, {64, 2, 16}, {128, 1, 32}, {128, 2, 16}}));
  EXPECT_EQ(shapes_of("[[sweep]]\nvariants = 'full'\naxes = { length = [64, 128], heads = [1, 2], "
                      "head_dim = [32, 16] }\nzip = [['head_dim', 'length']]"),
            (std::vector<Shape>{{64, 1, 32}, {64, 2, 32}, {128, 1, 16}, {128, 2, 16}}))
      << "the zip stands where its first axis does";
}

// Keys leave later parameters out at their default; conditions know them all the same.
TEST(Rules, ConditionsKnowTheDefaultsThatKeysLeaveOut) {
  const std::string all =
      "[[sweep]]\nmeasure = 'accuracy'\nvariants = 'deltanet[beta_max=[1,2]]'\n"
      "tasks = ['mqar[preset=small]', 'mqar[preset=updates]']\n";
  EXPECT_EQ(cells_of(all).size(), 4u);
  for (const char* condition :
       {"exclude = [{ task = 'mqar[updates=0]' }]", "include = [{ task = 'mqar[preset=small]' }]",
        "exclude = [{ variant = 'deltanet[beta_max=1]' }]"})
    EXPECT_EQ(cells_of(all + condition).size(), 2u) << condition;
}

TEST(Rules, TwoZipsAreCrossed) {
  const auto choices = combinations(
      {{"length", {"1", "2"}}, {"batch", {"3", "4"}}, {"heads", {"5", "6"}}, {"seed", {"7", "8"}}},
      {{"length", "heads"}, {"batch", "seed"}});
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[1], (Choice{{"length", "1"}, {"heads", "5"}, {"batch", "4"}, {"seed", "8"}}));
  EXPECT_EQ(combinations({{"seed", {"7", "8"}}}, {{"length", "seed"}}).size(), 2u)
      << "an axis that does not apply to the measure is left out";
}

TEST(Rules, AFlagThatBreaksAZipIsAnError) {
  SweepRequest request = request_of(
      "[[sweep]]\naxes = { heads = [1, 2], head_dim = [32, 16] }\nzip = ['heads', 'head_dim']");
  request.axes["heads"] = "4";
  EXPECT_EQ(fault_of([&] { plan(request); }),
            "zip: heads has 1 values and head_dim has 2; axes of a zip have equally many");
  request.axes["head_dim"] = "8";
  EXPECT_FALSE(plan(request).cells.empty());
}

std::set<std::string> labels_of(std::string_view text) {
  std::set<std::string> labels;
  for (const Cell& cell : cells_of(text)) labels.insert(cell.label);
  return labels;
}

TEST(Rules, ConditionsHoldForAxesVariantsAndParameters) {
  const std::string all =
      "[[sweep]]\nvariants = ['full', 'linformer[rank=[8,16]]']\n"
      "axes = { length = '64:256:*2', mode = ['forward', 'train'] }\n";
  EXPECT_EQ(cells_of(all).size(), 18u);
  EXPECT_EQ(cells_of(all + "exclude = [{ length = '>64', mode = 'train' }]").size(), 12u);
  EXPECT_EQ(cells_of(all + "exclude = [{ length = ['<=64', 256] }]").size(), 6u);
  EXPECT_EQ(cells_of(all + "exclude = [{ variant = 'linformer[rank=16]' }]").size(), 12u);
  EXPECT_EQ(cells_of(all + "exclude = [{ variant = ['full', 'linformer[rank=[4,8]]'] }]").size(),
            6u);
  EXPECT_EQ(cells_of(all + "include = [{ variant = 'full' }, { length = '!=256', mode = 'train' }]")
                .size(),
            6u + 4u);
  EXPECT_EQ(labels_of(all + "include = [{ variant = 'full' }]\nexclude = [{ length = 128 }, "
                            "{ mode = 'forward' }]"),
            (std::set<std::string>{"speed full length=64", "speed full length=256"}))
      << "what is included may be excluded";
  EXPECT_TRUE(cells_of(all + "include = [{ variant = 'linear' }]").empty());
}

TEST(Rules, ConditionsHoldForTasksAndTraining) {
  const std::string all =
      "[[sweep]]\nvariants = ['full', 'linear']\ntasks = ['mqar[pairs=[2,4]]', 'listops']\n"
      "training = { steps = [5, 6] }\naxes.seed = [0, 1]\n";
  EXPECT_EQ(cells_of(all).size(), 24u);
  EXPECT_EQ(cells_of(all + "exclude = [{ task = 'mqar[pairs=4]', training = 'steps=6' }]").size(),
            20u);
  EXPECT_EQ(cells_of(all + "include = [{ task = 'listops[preset=standard]', seed = 1 }]").size(),
            4u);
  EXPECT_EQ(cells_of(all + "exclude = [{ causal = true }]").size(), 8u) << "mqar is causal";
  EXPECT_EQ(cells_of(all + "exclude = [{ measure = 'speed' }]").size(), 24u);
  EXPECT_EQ(cells_of(all + "exclude = [{ heads = 4 }]").size(), 24u)
      << "no cell of accuracy has that axis";
}

TEST(Rules, ExcludeAtTheTopHoldsForEverySweepOfTheFile) {
  const std::string file =
      "extends = 'smoke'\nexclude = [{ measure = ['speed', 'memory'] }, "
      "{ variant = 'linear' }]\n[[sweep]]\nmeasure = 'memory'\n";
  for (const Cell& cell : cells_of(file)) {
    EXPECT_TRUE(cell.key.measure == Measure::fidelity || cell.key.measure == Measure::accuracy);
    EXPECT_NE(cell.key.variant.name, "linear");
  }
  EXPECT_FALSE(cells_of(file).empty());
}

TEST(Rules, ACrossProductBeyondTheLimitMayBeCutByConditions) {
  const std::string big =
      "[[sweep]]\nvariants = ['full', 'linear']\naxes = { length = '1:100:+1', batch = "
      "'1:120:+1' }\n";
  EXPECT_THROW(cells_of(big), Error);
  EXPECT_EQ(cells_of(big + "include = [{ length = '<5' }]").size(), 4u * 120 * 2);
}

}  // namespace
}  // namespace attn::grammar_test
