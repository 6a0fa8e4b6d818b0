// Sweeps that go on until intervals are narrow, visits that are made again, and what rows then say.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/affinity.h"
#include "harness/run/stopping.h"
#include "tests/harness/run/fake_cell.h"

namespace attn::precision_test {
namespace {

class Precision : public FakeSweep {
 protected:
  void SetUp() override {
    FakeSweep::SetUp();
    request_.axes = {{"measure", "speed"}, {"length", "64"}, {"repetitions", "3"}};
    request_.variants = {"full"};
  }
  // Visit number i (from 1) replies with `samples` and `more`, shell text that may use $i.
  void reply(const std::string& samples, const std::string& more = "") {
    behave(fmt::format(
        R"(*'"do":"measure"'*) i=$(grep -c measure {}); echo "{{\"status\":\"ok\",\"reason\":null,)"
        R"(\"samples\":[{}],\"flops\":1000{}}}";;)",
        log(), samples, more));
  }
};

TEST_F(Precision, GoesOnUntilTheIntervalIsNarrow) {
  request_.precision = 0.02;
  reply("1.0$((i % 2))");  // 1.00 and 1.01 in turn: ±0.4 % of six
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["rounds"], 12);
  EXPECT_EQ(row["visits_ended_by"], "precision");
  EXPECT_EQ(requests("measure").size(), 12u);
  EXPECT_EQ(requests("measure")[11]["repetitions"], 1);
  EXPECT_EQ(schema_fault(row), "");
}

TEST_F(Precision, VisitsEachCellAsOftenAsItNeeds) {
  request_.precision = 0.02;
  request_.variants = {"full", "linear"};
  behave(fmt::format(
      R"(*'"linear"'*'"repetitions"'*) echo '{{"status":"ok","reason":null,"samples":[1],"flops":1}}';;
*'"do":"measure"'*) i=$(grep -c '"full".*"repetitions"' {}); echo "{{\"status\":\"ok\",\"reason\":null,\"samples\":[$((1 + i % 2))],\"flops\":1}}";;)",
      log()));
  const std::vector<Json> rows = lines(sweep());
  EXPECT_EQ(rows.at(0)["visits_ended_by"], "max_visits");
  EXPECT_EQ(rows[0]["rounds"], kMostVisits);
  EXPECT_EQ(rows.at(1)["rounds"], 12);
  EXPECT_EQ(rows[1]["visits_ended_by"], "precision");
}

TEST_F(Precision, EndsWithTheTimeOfACell) {
  request_.precision = 0.02;
  request_.max_time_s = 1e-3;
  reply("$((1 + i % 2))");
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["visits_ended_by"], "max_time");
  EXPECT_EQ(row["rounds"], 3) << "the rounds of a sweep without a precision are the fewest";
}

TEST_F(Precision, WithoutItTheRoundsEndTheVisits) {
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["visits_ended_by"], "rounds");
  EXPECT_EQ(row["rounds"], 3);
}

TEST_F(Precision, NeedsATime) {
  request_.precision = 0.02;
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  EXPECT_THROW(plan(request_), Error);
}

std::string witness(const std::string& flops) {
  return R"(,\"witness\":{\"flops_per_s\":)" + flops + R"(,\"copy_bytes_per_s\":1e9})";
}

TEST_F(Precision, AVisitWhoseWitnessFellIsMadeAgain) {
  request_.variants = {"full", "truncated", "linformer", "performer", "linear"};
  // Visit 12 of 15 falls, and its repeat, the 13th, does not.
  reply("1", witness("$([ $i = 12 ] && echo 5e8 || echo 1e9)"));
  int64_t repeats = 0;
  for (const Json& row : lines(sweep())) {
    repeats += row.value("repeats", 0);
    EXPECT_FALSE(row.contains("noisy"));
    EXPECT_EQ(row["rounds"], 3);
    EXPECT_EQ(row["witness"]["flops_per_s"], Json({1e9, 1e9, 1e9}));
    EXPECT_DOUBLE_EQ(row["metrics"]["witness_fraction"], 1000 / 1e9);
    EXPECT_EQ(schema_fault(row), "");
  }
  EXPECT_EQ(repeats, 1);
  EXPECT_EQ(requests("measure").size(), 16u);
}

TEST_F(Precision, RepeatsAreFewAndARowSaysThatItsWitnessFell) {
  request_.variants = {"full", "truncated", "linformer", "performer", "linear"};
  reply("1", witness("$([ $i -ge 4 ] && echo 5e8 || echo 1e9)"));
  int64_t repeats = 0;
  for (const Json& row : lines(sweep())) {
    repeats += row.value("repeats", 0);
    EXPECT_EQ(row["noisy"], Json({"witness"})) << row["variant"];
  }
  EXPECT_EQ(repeats, 1) << "one in ten visits";
  EXPECT_EQ(requests("measure").size(), 16u);
}

// Visits 2, 3, 5 and 6 are disturbed: 1, 4 and 7 count.
TEST_F(Precision, WithATimeVisitsGoOnUntilEnoughAreCalm) {
  request_.max_time_s = 60;
  reply("$i", witness("$([ $((i % 3)) = 1 ] && echo 1e9 || echo 5e8)"));
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["samples"], Json({1, 4, 7}));
  EXPECT_EQ(row["visits_ended_by"], "rounds");
  EXPECT_EQ(row["rounds"], 3);
  EXPECT_EQ(row["repeats"], 4);
  EXPECT_EQ(row["witness"]["flops_per_s"], Json({1e9, 1e9, 1e9}));
  EXPECT_FALSE(row.contains("noisy"));
  EXPECT_EQ(schema_fault(row), "");
}

TEST_F(Precision, WhereNoVisitIsCalmTheTimeEndsThem) {
  request_.max_time_s = 0.2;
  reply("1", witness("$([ $i = 1 ] && echo 1e9 || echo 5e8)"));
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["visits_ended_by"], "max_time");
  EXPECT_EQ(row["noisy"], Json({"witness"}));
  EXPECT_GE(row["rounds"], 3);
  EXPECT_EQ(row["rounds"], row["visits"].size()) << "all count";
  request_.axes = {{"measure", "memory"}, {"length", "64"}};
  EXPECT_THROW(plan(request_), Error);
}

TEST_F(Precision, WhatDisturbedTheVisitsIsRecorded) {
  const std::string seen =
      R"(,\"disturbance\":{\"seconds\":1,\"involuntary_switches\":60,\"minor_faults\":1,)"
      R"(\"major_faults\":2,\"stolen_s\":0,\"others_s\":0.5,\"load\":$i,\"frequency_hz\":null})";
  reply("1", seen);
  const Json row = lines(sweep()).at(0);
  EXPECT_EQ(row["disturbance"]["involuntary_switches"], 180);
  EXPECT_EQ(row["disturbance"]["seconds"], 3);
  EXPECT_EQ(row["disturbance"]["load"], 3);
  EXPECT_EQ(row["noisy"], Json({"switches"}));
  EXPECT_EQ(schema_fault(row), "");
}

TEST_F(Precision, ThreadsStayOnTheProcessorsThatWereAskedFor) {
  const std::vector<int> allowed = allowed_cpus();
  const Json all = lines(sweep()).at(0);
  EXPECT_EQ(all["pinned"], Json({allowed.back()})) << "auto";
  EXPECT_EQ(requests("measure")[0]["cpus"], Json({allowed.back()}));
  request_.force = true;
  request_.pin = "none";
  EXPECT_FALSE(lines(sweep()).at(0).contains("pinned"));
  request_.pin = std::to_string(allowed[0]);
  EXPECT_EQ(lines(sweep()).at(0)["pinned"], Json({allowed[0]}));
  for (const std::string& bad :
       std::vector<std::string>{"", "x", "1023", std::to_string(allowed[0]) + ",1023"}) {
    request_.pin = bad;
    EXPECT_THROW(plan(request_), Error) << bad;
  }
  request_.pin = std::to_string(allowed[0]);
  request_.axes["threads"] = "2";
  EXPECT_THROW(plan(request_), Error) << "one processor for two threads";
}

}  // namespace
}  // namespace attn::precision_test
