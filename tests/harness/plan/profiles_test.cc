// Profiles: what they promise, and how flags given beside them override.
#include "harness/plan/profiles.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>

#include "harness/plan/axes.h"
#include "harness/plan/plan.h"
#include "variants/catalog.h"

namespace attn::profiles_test {
namespace {

SweepRequest profile(const std::string& name) {
  SweepRequest request;
  request.profile = name;
  return request;
}

// Reach is a question of its own, which no profile asks.
constexpr size_t kMeasuresOfProfiles = kMeasures.size() - 1;

// But for the probes, which are about accuracy alone, and two that leave fidelity out.
TEST(Profiles, EveryOneResolvesAndCoversEveryMeasure) {
  for (const ProfileInfo& info : all_profiles()) {
    const Plan result = plan(profile(info.name));
    std::set<Measure> measures;
    for (const Cell& cell : result.cells) measures.insert(cell.key.measure);
    const bool lacks_fidelity = info.name == "baselines" || info.name == "long";
    const size_t fewer = info.name == "probes" ? 3 : lacks_fidelity ? 1 : 0;
    EXPECT_EQ(measures.size(), kMeasuresOfProfiles - fewer) << info.name;
    EXPECT_EQ(result.config.profile, info.name);
    EXPECT_EQ(result.config.profile_version, info.version);
    EXPECT_GE(info.version, 1);
  }
}

TEST(Profiles, AxesAreOnesThatApply) {
  for (const ProfileInfo& info : all_profiles())
    for (const SubSweep& sweep : find_profile(info.name).sweeps)
      for (const auto& [name, text] : sweep.axes)
        EXPECT_TRUE(find_axis(name).applies_to(sweep.measure))
            << info.name << ": " << name_of(sweep.measure) << " " << name;
}

std::vector<std::string> ids_of(const SweepRequest& request) {
  std::vector<std::string> ids;
  for (const Cell& cell : plan(request).cells) ids.push_back(cell.id);
  return ids;
}

TEST(Profiles, TheFileOfOneHasTheSameCells) {
  for (const ProfileInfo& info : all_profiles()) {
    SweepRequest request;
    request.sweep_file =
        std::make_shared<const Profile>(read_profile("a.toml", find_profile(info.name).text));
    EXPECT_EQ(ids_of(request), ids_of(profile(info.name))) << info.name;
    EXPECT_EQ(timeout_of(request), info.timeout_s);
    EXPECT_EQ(plan(request).config.profile, info.name);
  }
}

std::set<std::pair<Measure, std::string>> measured(const std::string& name) {
  std::set<std::pair<Measure, std::string>> seen;
  for (const Cell& cell : plan(profile(name)).cells)
    if (cell.skip.empty()) seen.emplace(cell.key.measure, cell.key.variant.name);
  return seen;
}

TEST(Profiles, QuickMeasuresItsFiveVariantsByEveryMeasure) {
  EXPECT_EQ(measured("quick").size(), kMeasuresOfProfiles * 5);
}

// The parameters of each variant that a measure is taken with.
std::map<std::string, std::set<std::string>> params_of(const std::string& name, Measure measure) {
  std::map<std::string, std::set<std::string>> params;
  for (const Cell& cell : plan(profile(name)).cells)
    if (cell.key.measure == measure)
      params[cell.key.variant.name].insert(cell.key.variant.params.str());
  return params;
}

TEST(Profiles, TimesAndMemoryAreOfTheParametersThatAreTrained) {
  for (const char* const name : {"quick", "standard"})
    for (const Measure measure : {Measure::speed, Measure::memory}) {
      const auto costs = params_of(name, measure);
      for (const auto& [variant, trained] : params_of(name, Measure::accuracy))
        for (const std::string& params : trained)
          EXPECT_TRUE(costs.at(variant).count(params))
              << name << " " << name_of(measure) << " " << variant << " " << params;
    }
}

TEST(Profiles, QuickMeasuresTimeAndMemoryAtOneShapeUpToOneLength) {
  std::set<std::pair<int64_t, int64_t>> shapes;  // heads and head_dim, where the length is longest
  for (const Measure measure : {Measure::speed, Measure::memory})
    for (const Cell& cell : plan(profile("quick")).cells)
      if (cell.key.measure == measure && cell.key.axes.length == 4096)
        shapes.emplace(cell.key.axes.heads.value(), cell.key.axes.head_dim.value());
  EXPECT_EQ(shapes.size(), 1u);
}

TEST(Profiles, BaselinesMeasureEveryVariant) {
  const auto seen = measured("baselines");
  for (const VariantInfo& info : all_variants())
    for (const Measure measure : {Measure::speed, Measure::memory, Measure::accuracy})
      EXPECT_TRUE(seen.count({measure, info.name})) << name_of(measure) << " " << info.name;
}

TEST(Profiles, FlagsOverrideAxes) {
  SweepRequest request = profile("quick");
  request.axes = {{"measure", "speed,memory"}, {"length", "96"}};
  for (const Cell& cell : plan(request).cells) {
    EXPECT_NE(cell.key.measure, Measure::accuracy);
    EXPECT_EQ(cell.key.axes.length, 96);
  }
}

TEST(Profiles, AVariantAskedForKeepsTheProfilesParameters) {
  SweepRequest request = profile("quick");
  request.axes["measure"] = "accuracy";
  request.variants = {"truncated"};
  request.tasks = {"mqar"};
  const Plan lent = plan(request);
  ASSERT_EQ(lent.cells.size(), 3u) << "a cell a seed";
  EXPECT_EQ(lent.cells[0].key.variant.params.integer("window"), 16);
  EXPECT_EQ(lent.cells[0].key.task.value().params.integer("length"), 64) << "the profile's level";
  request.variants = {"truncated[window=5]"};
  EXPECT_EQ(plan(request).cells.at(0).key.variant.params.integer("window"), 5);
}

TEST(Profiles, ATaskAskedForKeepsTheProfilesRecipe) {
  SweepRequest request = profile("smoke");
  request.axes["measure"] = "accuracy";
  request.variants = {"full"};
  request.tasks = {"mqar[length=24]"};
  const Cell cell = plan(request).cells.at(0);
  EXPECT_EQ(cell.key.task.value().params.integer("length"), 24);
  EXPECT_EQ(cell.key.task.value().params.integer("pairs"), 2);
  EXPECT_EQ(cell.key.training.value().integer("width"), 32);
  request.training = "width=16";
  EXPECT_EQ(plan(request).cells.at(0).key.training.value().integer("width"), 16);
  EXPECT_EQ(plan(request).cells.at(0).key.training.value().integer("steps"), 20);
}

TEST(Profiles, ForecastsKeepTheirPromise) {
  const auto seconds = [](const std::string& name) {
    double total = 0;
    for (const Cell& cell : plan(profile(name)).cells)
      total += cell.forecast_s / (cell.key.measure == Measure::accuracy ? 2 : 1);
    return total;
  };
  EXPECT_LT(seconds("smoke"), 20);
  EXPECT_LT(seconds("quick"), 8 * 60);
}

}  // namespace
}  // namespace attn::profiles_test
