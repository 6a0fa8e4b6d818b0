// zip, include and exclude, on the cells that a sweep file plans.
#include "harness/plan/rules.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "core/base/check.h"
#include "harness/plan/profiles.h"

namespace attn::rules_test {
namespace {

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
  try {
    plan(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "zip: heads has 1 values and head_dim has 2; axes of a zip have equally many");
  }
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
}  // namespace attn::rules_test
