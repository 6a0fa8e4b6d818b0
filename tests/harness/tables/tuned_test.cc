// Tuning: the grid through plan and rows, shards that keep its choices together, and the choice on
// validation.
#include "harness/tables/tuned.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/check.h"
#include "tests/harness/sweep/fake_cell.h"

namespace attn::tuned_test {
namespace {

class TunedSweep : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    behave(
        R"(*'"measure":"accuracy"'*) echo '{"status":"ok","reason":null,"samples":[],"metrics":{"metric":"accuracy","test":0.5,"validation":0.5,"chance":0.1,"shortcuts":{},"lift":0.1,"steps":1,"examples":1,"train_s":1,"examples_per_s":1,"parameters":1}}';;)");
    request_.axes["measure"] = "accuracy";
    request_.variants = {"full", "linear"};
    request_.tasks = {"mqar[preset=small]"};
  }
};

TEST_F(TunedSweep, EveryChoiceIsACellAndARowSaysWhatWasTuned) {
  request_.tune = "learning_rate=[1e-3,3e-3],dropout=[0,0.1]";
  const SweepResult result = sweep();
  ASSERT_EQ(result.rows.size(), 2u * 4);
  std::set<double> rates;
  for (const Json& row : result.rows) {
    EXPECT_EQ(row["tuned"], (Json{"learning_rate", "dropout"}));
    rates.insert(row["training"]["learning_rate"].get<double>());
  }
  EXPECT_EQ(rates, (std::set<double>{1e-3, 3e-3}));
  EXPECT_EQ(result.run["config"]["sweeps"][0]["tuned"], (Json{"learning_rate", "dropout"}));
}

TEST_F(TunedSweep, ASettingFixedByHandIsNotTuned) {
  request_.profile = "standard";
  request_.tasks = {"mqar"};
  request_.axes["seed"] = "0";
  EXPECT_EQ(plan(request_).cells.size(), 2u * 2);
  request_.training = "learning_rate=5e-4";
  const Plan fixed = plan(request_);
  ASSERT_EQ(fixed.cells.size(), 2u);
  EXPECT_TRUE(fixed.cells[0].tuned.empty());
}

TEST_F(TunedSweep, RefusesWhatLeavesNoChoice) {
  request_.tune = "learning_rate=1e-3";
  EXPECT_THROW(plan(request_), Error);
  request_.tune = "learning_rate=[1e-3,0.001]";
  EXPECT_THROW(plan(request_), Error) << "the same value twice";
  request_.tune = "learning_rate=[1e-3,3e-3]";
  request_.training = "learning_rate=1e-3";
  EXPECT_THROW(plan(request_), Error) << "tuned and settled";
  request_.training = "";
  request_.tune = "learning_rat=[1e-3,2e-3]";
  EXPECT_THROW(plan(request_), Error);
  request_.tune = "learning_rate=[1e-3,3e-3]";
  request_.tasks.clear();
  request_.axes["measure"] = "speed";
  EXPECT_THROW(plan(request_), Error);
}

TEST_F(TunedSweep, AShardHoldsAllChoicesAndSeedsOfWhatItChooses) {
  request_.tune = "learning_rate=[1e-3,3e-3]";
  request_.axes["seed"] = "0,1,2";
  request_.tasks = {"mqar[preset=small]", "listops[preset=small]"};
  request_.shards = 3;
  std::map<std::string, int> home;  // variant and task -> its shard
  size_t cells = 0;
  for (request_.shard = 0; request_.shard < 3; request_.shard++)
    for (const Cell& cell : plan(request_).cells) {
      const std::string what = cell.key["variant"].dump() + cell.key["task"].dump();
      EXPECT_EQ(home.emplace(what, request_.shard).first->second, request_.shard) << what;
      cells++;
    }
  EXPECT_EQ(cells, 2u * 2 * 2 * 3);
}

Json row_of(double rate, int seed, double validation, const std::string& status = "ok") {
  return {{"status", status},
          {"variant", {{"name", "full"}}},
          {"task", {{"name", "mqar"}}},
          {"axes", {{"seed", seed}, {"threads", 1}}},
          {"training", {{"learning_rate", rate}, {"steps", 9}}},
          {"tuned", {"learning_rate"}},
          {"metrics", status == "ok" ? Json{{"validation", validation}} : Json()}};
}

std::set<double> rates_of(const std::vector<Json>& rows) {
  std::set<double> rates;
  for (const Json& row : chosen_on_validation(rows))
    rates.insert(row["training"]["learning_rate"].get<double>());
  return rates;
}

TEST(ChosenOnValidation, TheBestMeanStaysWithAllItsSeeds) {
  const std::vector<Json> rows = {row_of(1e-3, 0, 0.9), row_of(1e-3, 1, 0.2), row_of(3e-3, 0, 0.6),
                                  row_of(3e-3, 1, 0.6)};
  EXPECT_EQ(rates_of(rows), std::set<double>{3e-3});
  EXPECT_EQ(chosen_on_validation(rows).size(), 2u);
  EXPECT_EQ(choices_beside(rows[0], rows), 2u);
}

TEST(ChosenOnValidation, AFailureCountsAsNothingAndALackingRowLoses) {
  EXPECT_EQ(rates_of({row_of(1e-3, 0, 0.9), row_of(1e-3, 1, 0, "diverged"), row_of(3e-3, 0, 0.5),
                      row_of(3e-3, 1, 0.5)}),
            std::set<double>{3e-3});
  EXPECT_EQ(rates_of({row_of(1e-3, 0, 0.9), row_of(3e-3, 0, 0.5), row_of(3e-3, 1, 0.5)}),
            std::set<double>{3e-3});
}

TEST(ChosenOnValidation, ATieGoesToTheSmallerValueInWhateverOrderTheRowsCome) {
  EXPECT_EQ(rates_of({row_of(3e-3, 0, 0.5), row_of(1e-3, 0, 0.5)}), std::set<double>{1e-3});
  EXPECT_EQ(rates_of({row_of(1e-3, 0, 0.5), row_of(3e-3, 0, 0.5)}), std::set<double>{1e-3});
}

TEST(ChosenOnValidation, OtherContestsAndUntunedRowsAreLeftAlone) {
  Json longer = row_of(1e-3, 0, 0.1), untuned = row_of(1e-3, 0, 0.1);
  longer["training"]["steps"] = 99;
  untuned["tuned"] = Json::array();
  const std::vector<Json> rows = {row_of(3e-3, 0, 0.9), longer, untuned};
  EXPECT_EQ(chosen_on_validation(rows), rows);
}

}  // namespace
}  // namespace attn::tuned_test
