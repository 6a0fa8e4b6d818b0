// Tuning: the grid through plan and rows, shards that keep its choices together, and the choice on
// validation.
#include "harness/tables/tuned.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/check.h"
#include "harness/run/run.h"
#include "tests/harness/run/fake_cell.h"

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
  for (const Json& row : lines(result)) {
    EXPECT_EQ(row["tuned"], (Json{"learning_rate", "dropout"}));
    rates.insert(row["training"]["learning_rate"].get<double>());
  }
  EXPECT_EQ(rates, (std::set<double>{1e-3, 3e-3}));
  EXPECT_EQ(result.run.config.sweeps.at(0).tuned,
            (std::vector<std::string>{"learning_rate", "dropout"}));
}

TEST_F(TunedSweep, ASettingFixedByHandIsNotTuned) {
  request_.profile = "standard";
  request_.tasks = {"mqar"};
  request_.axes["seed"] = "0";
  EXPECT_EQ(plan(request_).cells.size(), 2u * 4);
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
      const std::string what = plugin_text(cell.key.variant) + plugin_text(cell.key.task.value());
      EXPECT_EQ(home.emplace(what, request_.shard).first->second, request_.shard) << what;
      cells++;
    }
  EXPECT_EQ(cells, 2u * 2 * 2 * 3);
}

Row made_row(double rate, int64_t seed, double validation, Status status = Status::ok,
             int64_t steps = 9) {
  Row row;
  row.key.measure = Measure::accuracy;
  row.key.variant.name = "full";
  row.key.task = Plugin{"mqar", {}};
  row.key.axes.seed = seed;
  row.key.axes.threads = 1;
  row.key.training = Params::unchecked({{"learning_rate", rate}, {"steps", steps}});
  row.tuned = {"learning_rate"};
  row.result.status = status;
  if (row.is_ok())
    row.result.metrics = AccuracyMetrics{.metric = "accuracy", .validation = validation};
  return row;
}

double rate_of(const Row& row) { return row.key.training.value().number("learning_rate"); }

std::set<double> rates_of(const std::vector<Row>& rows) {
  std::set<double> rates;
  for (const Row& row : chosen_on_validation(rows)) rates.insert(rate_of(row));
  return rates;
}

TEST(ChosenOnValidation, TheBestMeanStaysWithAllItsSeeds) {
  const std::vector<Row> rows = {made_row(1e-3, 0, 0.9), made_row(1e-3, 1, 0.2),
                                 made_row(3e-3, 0, 0.6), made_row(3e-3, 1, 0.6)};
  EXPECT_EQ(rates_of(rows), std::set<double>{3e-3});
  EXPECT_EQ(chosen_on_validation(rows).size(), 2u);
  EXPECT_EQ(choices_beside(rows[0], rows), 2u);
}

TEST(ChosenOnValidation, AFailureCountsAsNothingAndALackingRowLoses) {
  EXPECT_EQ(rates_of({made_row(1e-3, 0, 0.9), made_row(1e-3, 1, 0, Status::diverged),
                      made_row(3e-3, 0, 0.5), made_row(3e-3, 1, 0.5)}),
            std::set<double>{3e-3});
  EXPECT_EQ(rates_of({made_row(1e-3, 0, 0.9), made_row(3e-3, 0, 0.5), made_row(3e-3, 1, 0.5)}),
            std::set<double>{3e-3});
}

TEST(ChosenOnValidation, ATieGoesToTheSmallerValueInWhateverOrderTheRowsCome) {
  EXPECT_EQ(rates_of({made_row(3e-3, 0, 0.5), made_row(1e-3, 0, 0.5)}), std::set<double>{1e-3});
  EXPECT_EQ(rates_of({made_row(1e-3, 0, 0.5), made_row(3e-3, 0, 0.5)}), std::set<double>{1e-3});
}

TEST(ChosenOnValidation, OtherContestsAndUntunedRowsAreLeftAlone) {
  const Row longer = made_row(1e-3, 0, 0.1, Status::ok, 99);
  Row untuned = made_row(1e-3, 0, 0.1);
  untuned.tuned.clear();
  const std::vector<Row> rows = {made_row(3e-3, 0, 0.9), longer, untuned};
  const std::vector<Row> kept = chosen_on_validation(rows);
  ASSERT_EQ(kept.size(), rows.size());
  for (size_t i = 0; i < rows.size(); i++) EXPECT_EQ(to_json(kept[i]), to_json(rows[i]));
}

}  // namespace
}  // namespace attn::tuned_test
