// Successive halving: rounds and budgets, who goes on, and what a search leaves to the results;
// then whole sweeps with planted scores, cut short and divided.
#include "harness/plan/halving.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "harness/run/halving_run.h"
#include "harness/tables/table.h"
#include "harness/tables/tuned.h"
#include "tests/harness/plan/planned.h"
#include "tests/harness/run/fake_cell.h"
#include "tests/said.h"

namespace attn::halving_test {
namespace {

double rate_of(const CellKey& key) { return key.training.value().number("learning_rate"); }
int64_t steps_of(const CellKey& key) { return key.training.value().integer("steps"); }

SweepRequest six_rates() {
  SweepRequest request;
  request.axes = {{"measure", "accuracy"}, {"seed", "3,1,2"}};
  request.variants = {"full"};
  request.tasks = {"mqar[preset=small]"};
  request.training = "steps=1600,warmup=20,eval_every=50";
  request.tune = "learning_rate";
  request.tune_by = "halving";
  return request;
}

// Answers every cell that is asked for with what `validation` says of its rate; what it asks for
// next, until nothing.
struct Played {
  std::vector<std::pair<int64_t, std::set<double>>> rounds;  // steps, rates
  std::vector<Cell> results;

  // `target`: what a score above it ends by.
  Played(const SweepRequest& request, const std::map<double, double>& validation, double target = 2,
         const std::string& metric = "accuracy") {
    const std::vector<Cell> grid = plan(request).cells;
    std::map<std::string, Row> answered;
    while (true) {
      std::map<std::string, const Row*> rows;
      for (const auto& [id, row] : answered) rows[id] = &row;
      bool is_new = false;
      results.clear();
      std::vector<std::pair<int64_t, std::set<double>>> now;
      for (const Cell& cell : halved(request, grid, rows)) {
        Row row;
        row.key = cell.key;
        const double score = validation.at(rate_of(cell.key));
        if (score < 0) row.result.status = Status::diverged;
        row.result.metrics = AccuracyMetrics{.metric = metric, .test = 1 - score};
        auto& metrics = std::get<AccuracyMetrics>(row.result.metrics);
        metrics.validation = score;
        metrics.steps = score == 1 ? static_cast<int64_t>(1e5 * rate_of(cell.key)) : 100;
        metrics.ended_by = score >= target ? "target" : "steps";
        is_new = answered.emplace(cell.id, std::move(row)).second || is_new;
        if (!cell.trial)
          results.push_back(cell);
        else if (now.empty() || now.back().first != steps_of(cell.key))
          now.emplace_back(steps_of(cell.key), std::set{rate_of(cell.key)});
        else
          now.back().second.insert(rate_of(cell.key));
      }
      if (!is_new) break;
      rounds = now;
    }
  }
};

TEST(Halving, TheBetterHalfGoesOnAtTwiceTheBudget) {
  const Played played(
      six_rates(), {{5e-4, 0.3}, {1e-3, 0.6}, {2e-3, 0.5}, {4e-3, 0.9}, {8e-3, 0.4}, {16e-3, -1}});
  ASSERT_EQ(played.rounds.size(), 3u);
  EXPECT_EQ(played.rounds[0].first, 200);
  EXPECT_EQ(played.rounds[0].second.size(), 6u);
  EXPECT_EQ(played.rounds[1], (std::pair(int64_t{400}, std::set{1e-3, 2e-3, 4e-3})));
  EXPECT_EQ(played.rounds[2], (std::pair(int64_t{800}, std::set{1e-3, 4e-3})));
  ASSERT_EQ(played.results.size(), 3u) << "a seed each";
  for (const Cell& cell : played.results) {
    EXPECT_EQ(rate_of(cell.key), 4e-3);
    EXPECT_EQ(steps_of(cell.key), 1600);
    ASSERT_TRUE(cell.search);
    EXPECT_EQ(cell.search->choices, 6);
    EXPECT_EQ(cell.search->trainings, 6 + 3 + 2);
    EXPECT_EQ(cell.search->steps, 100 * 10 + 200) << "as rows say; of the failure its budget";
  }
}

TEST(Halving, TrialsAreOfTheFirstSeedAndScoreNothingElse) {
  SweepRequest request = six_rates();
  request.test_on = "length=[64,128]";
  request.training += ",stretch=2";
  const std::vector<Cell> grid = plan(request).cells;
  ASSERT_EQ(grid.size(), 18u);
  const std::vector<Cell> first = halved(request, grid, {});
  ASSERT_EQ(first.size(), 6u);
  std::set<std::string> ids;
  for (const Cell& cell : first) {
    EXPECT_EQ(cell.key.axes.seed, 3);
    EXPECT_EQ(cell.key.training->integer("stretch"), 1);
    EXPECT_TRUE(cell.key.test_on.empty());
    EXPECT_EQ(cell.trial.value(), (Trial{1, 6}));
    ids.insert(cell.id);
  }
  for (const Cell& cell : grid) EXPECT_FALSE(ids.count(cell.id)) << "no result is a trial";
}

TEST(Halving, OfEqualScoresTheOneThatTookFewerStepsGoesOn) {
  SweepRequest request = six_rates();
  request.tune = "learning_rate=[4e-3,2e-3]";
  EXPECT_EQ(rate_of(Played(request, {{4e-3, 1}, {2e-3, 1}}).results.at(0).key), 2e-3);
  EXPECT_EQ(rate_of(Played(request, {{4e-3, 0.5}, {2e-3, 0.5}}).results.at(0).key), 4e-3)
      << "the first that was given";
  EXPECT_EQ(Played(request, {{4e-3, -1}, {2e-3, -1}}).results.size(), 3u) << "all diverged";
}

TEST(Halving, OfBitsTheLeastGoesOn) {
  SweepRequest request = six_rates();
  request.tune = "learning_rate=[4e-3,2e-3]";
  const Played played(request, {{4e-3, 0.7}, {2e-3, 0.5}}, 2, "bits_per_token");
  EXPECT_EQ(rate_of(played.results.at(0).key), 2e-3);
}

TEST(Halving, ATargetThatIsReachedEndsTheRoundsAtTheMiddleOfThoseThatReachedIt) {
  const auto played = [](const std::map<double, double>& validation) {
    return Played(six_rates(), validation, 0.9);
  };
  const Played three =
      played({{5e-4, 0.3}, {1e-3, 0.91}, {2e-3, 0.92}, {4e-3, 0.99}, {8e-3, 0.4}, {16e-3, -1}});
  ASSERT_EQ(three.rounds.size(), 1u);
  ASSERT_EQ(three.results.size(), 3u);
  for (const Cell& cell : three.results) {
    EXPECT_EQ(rate_of(cell.key), 2e-3);
    EXPECT_EQ(steps_of(cell.key), 1600);
    EXPECT_EQ(cell.search.value().trainings, 6);
  }
  const Played two =
      played({{5e-4, 0.3}, {1e-3, 0.6}, {2e-3, 0.91}, {4e-3, 0.99}, {8e-3, 0.4}, {16e-3, -1}});
  EXPECT_EQ(rate_of(two.results.at(0).key), 2e-3) << "the first of two";
  EXPECT_EQ(two.rounds.size(), 1u);
}

TEST(Halving, WhereNoneHasBegunToLearnAllThatAreAsGoodGoOn) {
  const std::map<double, double> none = {{5e-4, 0.05}, {1e-3, 0.06}, {2e-3, 0.08},
                                         {4e-3, 0.02}, {8e-3, 0.01}, {16e-3, -1}};
  const Played played(six_rates(), none);
  const std::set<double> five = {5e-4, 1e-3, 2e-3, 4e-3, 8e-3};
  ASSERT_EQ(played.rounds.size(), 3u);
  EXPECT_EQ(played.rounds[1], (std::pair(int64_t{400}, five)));
  EXPECT_EQ(played.rounds[2], (std::pair(int64_t{800}, five)));
  EXPECT_EQ(rate_of(played.results.at(0).key), 2e-3) << "the greatest, since one must be taken";
  EXPECT_EQ(played.results.at(0).search->trainings, 6 + 5 + 5);
  std::map<double, double> one = none;
  one[4e-3] = 0.11;
  EXPECT_EQ(Played(six_rates(), one).rounds[1].second, (std::set{1e-3, 2e-3, 4e-3}));
  const std::map<double, double> bits = {{5e-4, 5}, {1e-3, 4}, {2e-3, 3},
                                         {4e-3, 6}, {8e-3, 7}, {16e-3, -1}};
  EXPECT_EQ(Played(six_rates(), bits, 20, "bits_per_token").rounds[1].second,
            (std::set{5e-4, 1e-3, 2e-3}));
  // Of an error, by the chance of `Played`: 0.
  const std::map<double, double> errors = {{5e-4, 0.5}, {1e-3, 0.4}, {2e-3, 0.3},
                                           {4e-3, 0.6}, {8e-3, 0.7}, {16e-3, -1}};
  EXPECT_EQ(Played(six_rates(), errors, 20, "mean_squared_error").rounds[1].second.size(), 3u);
}

TEST(Halving, BudgetsAreHalvesOfTheSteps) {
  const auto budgets = [](size_t choices, int64_t steps) {
    return halving_budgets(
        choices, Params::unchecked(
                     {{"steps", steps}, {"warmup", int64_t{20}}, {"eval_every", int64_t{50}}}));
  };
  EXPECT_EQ(budgets(6, 1600), (std::vector<int64_t>{200, 400, 800}));
  EXPECT_EQ(budgets(2, 1600), (std::vector<int64_t>{800}));
  EXPECT_EQ(budgets(6, 500), (std::vector<int64_t>{100, 125, 250})) << "two validations at least";
  EXPECT_EQ(budgets(6, 10), (std::vector<int64_t>{5, 5, 5})) << "never the result's own steps";
}

TEST(Halving, AForecastHoldsTheWholeSearch) {
  const SweepRequest request = six_rates();
  const std::vector<Cell> whole = halved_as_forecast(request, plan(request).cells);
  EXPECT_EQ(whole.size(), 6u + 3 + 2 + 3);
  double seconds = 0;
  for (const Cell& cell : whole) seconds += cell.forecast_s;
  double grid = 0;
  for (const Cell& cell : plan(request).cells) grid += cell.forecast_s;
  EXPECT_LT(seconds, 0.6 * grid);
}

TEST(Halving, AShardHoldsWholeSearches) {
  SweepRequest request = six_rates();
  request.variants = {"full", "linear", "performer"};
  request.shards = 3;
  for (request.shard = 0; request.shard < 3; request.shard++) {
    std::set<std::string> variants;
    const std::vector<Cell> cells = halved(request, plan(request).cells, {});
    for (const Cell& cell : cells) variants.insert(cell.key.variant.name);
    EXPECT_EQ(cells.size(), 6u);
    EXPECT_EQ(variants.size(), 1u);
  }
}

TEST(Halving, WhatItCannotDoIsRefused) {
  SweepRequest request = six_rates();
  request.tune_by = "half";
  EXPECT_TRUE(says(error_of(request), "grid or halving"));
  request.tune_by = "halving";
  request.training = "steps=[100,200]";
  EXPECT_TRUE(says(error_of(request), "one number of steps"));
  request.training = "steps=3";
  EXPECT_TRUE(says(error_of(request), "4 steps or more"));
  request.training.clear();
  request.tune.clear();
  EXPECT_TRUE(says(error_of(request), "nothing is tuned"));
}

class HalvedSweep : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    const std::string program = request_.program, output = request_.output;
    const SweepRequest asked = six_rates();
    request_.axes = asked.axes;
    request_.variants = {"full", "linear"};
    request_.tasks = asked.tasks;
    request_.training = asked.training;
    request_.tune = "learning_rate=[1e-3,2e-3,4e-3]";
    request_.tune_by = "halving";
    // Test says the contrary of validation.
    behave(answer("0.001", 0.9, 0.1) + answer("0.002", 0.95, 0.2) + answer("0.004", 0.5, 0.99));
  }
  static std::string answer(const std::string& rate, double validation, double test) {
    return fmt::format(
        R"(*'"measure":"accuracy"'*'"learning_rate":{},'*) echo '{{"status":"ok","reason":null,"samples":[],"metrics":{{"metric":"accuracy","test":{},"validation":{},"chance":0.1,"shortcuts":{{}},"lift":0.1,"steps":10,"examples":1,"train_s":1,"data_wait_share":0,"examples_per_s":1,"parameters":1,"flops":1,"final_train_loss":1,"state_bytes":null}}}}';;
)",
        rate, test, validation);
  }
  SweepResult halving() { return run_halving(request_, plan(request_), {}); }
  size_t trainings() const {
    size_t count = 0;
    for (const Json& request : requests("measure")) count += !request.is_null();
    return count;
  }
};

constexpr size_t kEach = 3 + 2 + 3;  // trials of two rounds, and a result a seed

TEST_F(HalvedSweep, ValidationChoosesAndRowsHoldTheWholeEffort) {
  const SweepResult result = halving();
  EXPECT_EQ(result.rows.size(), 2 * kEach);
  EXPECT_EQ(trainings(), 2 * kEach);
  EXPECT_EQ(result.run.config.sweeps.at(0).tune_by, "halving");
  std::set<double> rates;
  size_t trials = 0;
  for (const Row& row : result.rows)
    if (row.trial)
      trials++;
    else
      rates.insert(rate_of(row.key));
  EXPECT_EQ(trials, 2u * 5);
  EXPECT_EQ(rates, std::set<double>{2e-3});
  const std::vector<Row> results = chosen_on_validation(result.rows);
  EXPECT_EQ(results.size(), 2u * 3) << "no trial is a result";
  EXPECT_EQ(choices_beside(results.at(0), result.rows), 3u);
  for (const Json& line : lines(result)) {
    const Row again = row_of(line);
    EXPECT_EQ(to_json(again), line) << "a round trip";
    EXPECT_EQ(line.contains("trial"), !line.contains("search"));
  }
  const Table ledger = ledger_tables(result.rows).at(0);
  ASSERT_EQ(ledger.rows.size(), 2u);
  EXPECT_EQ(ledger.columns.back(), "tuned");
  EXPECT_EQ(ledger.rows[0].back(), "best of 3, by 5 trainings of 50 steps in all");
  ASSERT_EQ(tables_of(result.rows).size(), 1u);
}

// As kill -9 leaves it: the rows that were done, wherever in the search.
TEST_F(HalvedSweep, ASearchThatWasEndedRepeatsNoTraining) {
  const SweepResult whole = halving();
  std::vector<std::string> held;
  {
    std::ifstream file(request_.output);
    for (std::string line; std::getline(file, line);) held.push_back(line);
  }
  ASSERT_EQ(held.size(), 1 + 2 * kEach) << "one run line";
  for (const size_t kept : {size_t{1}, size_t{3}, size_t{8}, size_t{12}, 2 * kEach}) {
    std::ofstream(log(), std::ios::trunc);
    std::ofstream file(request_.output, std::ios::trunc);
    for (size_t i = 0; i <= kept; i++) file << held[i] << "\n";
    file.close();
    const SweepResult again = halving();
    EXPECT_EQ(trainings(), 2 * kEach - kept) << kept;
    EXPECT_EQ(again.reused, kept);
    EXPECT_EQ(again.rows.size(), whole.rows.size());
    for (const Row& row : again.rows)
      if (!row.trial) {
        EXPECT_EQ(rate_of(row.key), 2e-3);
      }
  }
}

// Its scores, in a file of another machine: the rest is trained here, in a file of this machine.
TEST_F(HalvedSweep, ScoresOfAnotherMachineStand) {
  const SweepResult whole = halving();
  std::vector<Json> there = read_rows(request_.output);
  there[0]["environment"]["cpu_model"] = "another processor";
  for (Json& line : there) line["run"] = "0123456789abcdef";
  for (const size_t kept : {size_t{1}, size_t{7}, 2 * kEach}) {
    std::ofstream(log(), std::ios::trunc);
    std::filesystem::remove(request_.output);
    const std::string other = folder_ + "/other.jsonl";
    {
      RowWriter writer(other, true);
      for (size_t i = 0; i <= kept; i++) writer.append(there[i]);
    }
    request_.held = {other};
    const SweepResult result = halving();
    EXPECT_EQ(trainings(), 2 * kEach - kept);
    EXPECT_EQ(result.reused, kept);
    EXPECT_EQ(result.rows.size(), whole.rows.size());
    EXPECT_FALSE(result.run.run.empty());
    const std::vector<Json> here = read_rows(request_.output);
    EXPECT_EQ(here.size(), 1 + 2 * kEach - kept) << "the run too where all is held";
    EXPECT_NE(here[0]["run"], there[0]["run"]) << "this machine has a run of its own";
  }
}

// As one of the output does, also with --retry, which would put the cell into both files.
TEST_F(HalvedSweep, AFailureOfAnotherMachineStands) {
  behave(R"(*'"learning_rate":0.004,'*) exit 9;;
)" + answer("0.001", 0.9, 0.1) +
         answer("0.002", 0.95, 0.2));
  halving();
  const std::string other = folder_ + "/other.jsonl";
  std::filesystem::rename(request_.output, other);
  std::ofstream(log(), std::ios::trunc);
  request_.held = {other};
  request_.retry = {"failed"};
  halving();
  EXPECT_EQ(trainings(), 0u);
  request_.held = {folder_ + "/none.jsonl"};
  EXPECT_TRUE(says(fault_of([&] { halving(); }), "none.jsonl"));
  request_.held = {other};
  request_.output = folder_ + "/else.jsonl";
  request_.tune_by = "grid";
  request_.training = "steps=400,warmup=20,eval_every=50";  // as many as a trial has
  const std::string message = fault_of([&] { sweep(); });
  EXPECT_TRUE(says(message, "other.jsonl' holds")) << message;
  EXPECT_TRUE(says(message, "leave it out of --held")) << message;
}

TEST_F(HalvedSweep, ATrialIsNoResultOfAnotherSweep) {
  halving();
  request_.tune_by = "grid";
  request_.training = "steps=400,warmup=20,eval_every=50";  // as many as a trial has
  EXPECT_TRUE(says(fault_of([&] { sweep(); }), "as a trial of a search"));
}

}  // namespace
}  // namespace attn::halving_test
