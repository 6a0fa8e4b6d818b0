// Speed cells: rounds in random order with a recorded seed, merged samples, and figures from them.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <functional>
#include <set>

#include "harness/run/run.h"
#include "harness/store/schema.h"
#include "tests/harness/run/fake_cell.h"
#include "tests/said.h"

namespace attn::sweeper_rounds_test {
namespace {

class Rounds : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    request_.axes = {{"measure", "speed"}, {"length", "64,128,256,512"}, {"repetitions", "7"}};
    request_.variants = {"full", "truncated", "linformer", "performer", "linear"};
  }
  // Of one length, the variants in the order of their visits.
  std::vector<std::string> visits(int64_t length) const {
    std::vector<std::string> names;
    for (const Json& request : requests("measure"))
      if (request["key"]["axes"]["length"] == length)
        names.push_back(request["key"]["variant"]["name"]);
    return names;
  }
};

TEST_F(Rounds, VisitEveryVariantOnceARound) {
  sweep();
  std::set<std::vector<std::string>> orders;
  for (const int64_t length : {64, 128, 256, 512}) {
    const std::vector<std::string> all = visits(length);
    ASSERT_EQ(all.size(), 15u);
    for (size_t round = 0; round < 3; round++) {
      const std::vector<std::string> order(all.begin() + round * 5, all.begin() + round * 5 + 5);
      EXPECT_EQ(std::set<std::string>(order.begin(), order.end()).size(), 5u);
      orders.insert(order);
    }
  }
  EXPECT_GT(orders.size(), 6u) << "twelve random orders of five must not be all alike";
  std::vector<int64_t> lengths;  // one group is done before the next begins
  for (const Json& request : requests("measure"))
    lengths.push_back(request["key"]["axes"]["length"]);
  EXPECT_TRUE(std::is_sorted(lengths.begin(), lengths.end()));
}

TEST_F(Rounds, ShareTheRepetitionsAndMergeTheSamples) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  const SweepResult result = sweep();
  std::vector<int> shares;
  for (const Json& request : requests("measure")) shares.push_back(request["repetitions"]);
  EXPECT_EQ(shares, (std::vector<int>{3, 2, 2}));
  const Json row = lines(result).at(0);
  EXPECT_EQ(row["samples"], Json({0.5, 0.25, 0.5, 0.25, 0.5, 0.25}));
  EXPECT_EQ(row["rounds"], 3);
  EXPECT_EQ(row["visits"], Json({2, 2, 2})) << "the samples that each process gave";
  EXPECT_EQ(row["metrics"]["time_s"]["ci_low"], row["metrics"]["time_s"]["ci_high"])
      << "three visits that agree; as six samples of one they would not";
  EXPECT_EQ(schema_fault(row), "");
  EXPECT_EQ(row["order_seed"], result.run.order_seed);
  const Json& metrics = row["metrics"];
  EXPECT_EQ(metrics["time_s"]["n"], 6);
  EXPECT_DOUBLE_EQ(metrics["time_s"]["median"], 0.375);
  EXPECT_DOUBLE_EQ(metrics["time_s"]["min"], 0.25);
  EXPECT_DOUBLE_EQ(metrics["tokens_per_s"], 64 / 0.375);
  EXPECT_DOUBLE_EQ(metrics["flops_per_s"], 1000 / 0.375);
  EXPECT_DOUBLE_EQ(metrics["peak_fraction"],
                   1000 / 0.375 / 1e12);  // the fake's calibration, one thread
}

TEST_F(Rounds, DecodingIsOneTokenOfEverySequence) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  request_.axes["batch"] = "3";
  request_.axes["mode"] = "decode";
  behave(
      R"(*'"measure":"speed"'*) echo '{"status":"ok","reason":null,"samples":[0.5],"flops":1000,)"
      R"("state_bytes":4096}';;)");
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["axes"]["causal"], true);
  EXPECT_DOUBLE_EQ(row["metrics"]["tokens_per_s"], 3 / 0.5);
  EXPECT_EQ(row["metrics"]["state_bytes"], 4096);
  EXPECT_EQ(schema_fault(row), "");
}

TEST_F(Rounds, MoreThanThePeakIsAFailure) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  behave(
      R"(*'"measure":"speed"'*) echo '{"status":"ok","reason":null,"samples":[1e-3],"flops":1.1e9}';;)");
  const SweepResult result = sweep();
  EXPECT_EQ(lines(result).at(0)["status"], "failed");
  EXPECT_TRUE(says(lines(result)[0]["reason"].get<std::string>(), "peak"));
}

TEST_F(Rounds, RooflineIsTheSlowerOfArithmeticAndMemory) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  request_.force = true;
  struct Case {
    const char *threads, *bytes;
    double roofline;
  };
  // The fake machine: 1e12 FLOP/s and 8e9 bytes/s on one thread, 2e12 and 1e10 on both.
  for (const auto& [threads, bytes, roofline] :
       {Case{"1", "4e6", 5e-4}, {"1", "4", 1e-9}, {"2", "4e6", 4e-4}, {"2", "4", 5e-10}}) {
    request_.axes["threads"] = threads;
    behave(
        fmt::format(R"(*'"measure":"speed"'*) echo '{{"status":"ok","reason":null,"samples":[0.5],)"
                    R"("flops":1000,"bytes":{}}}';;)",
                    bytes));
    const Json row = lines(sweep()).at(0);
    EXPECT_DOUBLE_EQ(row["metrics"]["roofline_s"], roofline);
    EXPECT_EQ(schema_fault(row), "");
  }
}

TEST_F(Rounds, WhatIsNotDeclaredHasNoRoofline) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  behave(
      R"(*'"measure":"speed"'*) echo '{"status":"ok","reason":null,"samples":[0.5],"flops":1000,)"
      R"("bytes":null,"cost":"measured"}';;)");
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["status"], "ok") << row["reason"];
  EXPECT_TRUE(row["metrics"]["bytes"].is_null());
  EXPECT_TRUE(row["metrics"]["roofline_s"].is_null());
  EXPECT_EQ(row["ledger"]["cost"], "measured");
  EXPECT_EQ(schema_fault(row), "");
}

TEST_F(Rounds, PeakFollowsTheThreads) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  request_.axes["threads"] = "2";
  EXPECT_DOUBLE_EQ(lines(sweep()).at(0)["metrics"]["peak_fraction"], 1000 / 0.375 / 2e12);
}

TEST_F(Rounds, AFailedVisitEndsItsCellAlone) {
  request_.variants = {"full", "linear"};
  request_.axes["length"] = "64";
  behave(R"(*'"do":"measure"'*'"full"'*) exit 9;;)");
  const SweepResult result = sweep();
  EXPECT_EQ(lines(result).at(0)["status"], "failed");
  EXPECT_EQ(lines(result).at(1)["status"], "ok");
  const std::vector<std::string> all = visits(64);
  EXPECT_EQ(std::count(all.begin(), all.end(), "full"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "linear"), 3);
}

TEST_F(Rounds, AVisitThatWasStoppedIsRepeated) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  const auto stopped = [&](int times) {  // the first of a sweep's visits
    request_.force = true;
    std::filesystem::remove(log());
    const std::string count = "$(grep -c measure " + log() + ")";
    const std::string reply = R"({"status":"ok","reason":null,"samples":[0.5,0.25],"flops":1000)";
    behave("*'\"do\":\"measure\"'*) if [ " + count + " -le " + std::to_string(times) +
           " ]; then echo '" + reply + ",\"stopped\":true}'; else echo '" + reply + "}'; fi;;");
    return lines(sweep()).at(0);
  };
  const Json again = stopped(3);
  EXPECT_FALSE(again.contains("noisy"));
  EXPECT_EQ(again["visits"], Json({2, 2, 2}));
  EXPECT_EQ(requests("measure").size(), 6u);
  const Json marked = stopped(4);
  EXPECT_EQ(marked["noisy"], Json({"stopped"}));
  EXPECT_EQ(marked["visits"], Json({2, 2, 2}));
  EXPECT_EQ(requests("measure").size(), 6u);
  EXPECT_EQ(schema_fault(marked), "");
}

TEST_F(Rounds, TheTimeLimitIsOfTheWholeCell) {
  request_.variants = {"full"};
  request_.axes["length"] = "64";
  request_.timeout_s = 2;
  behave(
      R"(*'"do":"measure"'*) sleep 1.2; echo '{"status":"ok","reason":null,"samples":[1],"flops":1}';;)");
  EXPECT_EQ(lines(sweep()).at(0)["status"], "timeout");
}

std::function<void(const Progress&)> interrupt_in(const std::string& round) {
  return [round](const Progress& progress) {
    if (progress.current.ends_with(round)) raise(SIGINT);
  };
}

TEST_F(Rounds, InterruptedCellsHaveNoRowAndAreCompletedLater) {
  request_.variants = {"full", "linear"};
  request_.axes["length"] = "64";
  for (const char* round : {"round 1/3", "round 2/3"}) {
    const SweepResult cut = sweep(interrupt_in(round));
    EXPECT_EQ(exit_code(cut), 130);
    EXPECT_TRUE(cut.rows.empty()) << round;
  }
  EXPECT_EQ(read_rows(request_.output).size(), 1u) << "the run line";
  const SweepResult whole = sweep();
  ASSERT_EQ(whole.rows.size(), 2u);
  for (const Json& row : lines(whole)) {
    EXPECT_EQ(row["status"], "ok");
    EXPECT_EQ(row["rounds"], 3);
    EXPECT_EQ(row["metrics"]["time_s"]["n"], 6);
  }
}

TEST_F(Rounds, ACellIsWrittenWhenItsOwnLastRoundIsDone) {
  request_.axes["length"] = "64";
  int last_visits = 0;
  const SweepResult cut = sweep([&](const Progress& progress) {
    if (!progress.row && progress.current.ends_with("round 3/3") && ++last_visits == 3)
      raise(SIGINT);
  });
  EXPECT_EQ(exit_code(cut), 130);
  ASSERT_EQ(cut.rows.size(), 2u) << "of five cells, two had all their rounds";
  for (const Json& row : lines(cut)) EXPECT_EQ(row["rounds"], 3);
  EXPECT_EQ(sweep().rows.size(), 5u);
  EXPECT_EQ(read_rows(request_.output).size(), 1u + 5) << "none is measured twice";
}

TEST_F(Rounds, AReplyWithoutTimesFailsItsCellAlone) {
  request_.variants = {"full", "linear"};
  request_.axes["length"] = "64";
  request_.force = true;
  for (const char* reply :
       {R"("flops":1)", R"("samples":[],"flops":1)", R"("samples":[null],"flops":1)",
        R"("samples":["fast"],"flops":1)", R"("samples":[1])", R"("samples":[1],"flops":null)",
        R"("samples":[1],"flops":1,"bytes":[])"}) {
    behave(fmt::format(
        R"(*'"do":"measure"'*'"full"'*) echo '{{"status":"ok","reason":null,{}}}';;)", reply));
    const SweepResult result = sweep();
    EXPECT_EQ(lines(result).at(0)["status"], "failed") << reply;
    EXPECT_EQ(lines(result).at(1)["status"], "ok") << reply;
  }
}

}  // namespace
}  // namespace attn::sweeper_rounds_test
