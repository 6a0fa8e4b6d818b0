// How often a cell is visited: until it is precise, while it is noisy, where it stops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/base/affinity.h"
#include "core/base/rng.h"
#include "harness/run/noisy.h"
#include "harness/run/stopping.h"
#include "tests/harness/run/fake_cell.h"

namespace attn::precision_test {
namespace {

// Sweeps that go on until intervals are narrow, visits that are made again, and what rows then say.

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

// When visits end, and that intervals which end them still hold the true value as often as they
// say.

Summary of_width(double share) {
  return {.median = 2, .ci_low = 2 - 2 * share, .ci_high = 2 + 2 * share};
}

TEST(Stopping, WithoutAPrecisionTheRoundsDecide) {
  Stopping stopping(3, 0, 0);
  EXPECT_EQ(stopping.after(of_width(0), 1, 100), std::nullopt);
  EXPECT_EQ(stopping.after(of_width(0), 2, 100), std::nullopt);
  EXPECT_EQ(stopping.after(of_width(0.5), 3, 100), VisitsEnd::rounds);
}

TEST(Stopping, ANarrowIntervalMustBeConfirmed) {
  Stopping stopping(3, 0.02, 0);
  for (int visits = 1; visits < 12; visits++)
    EXPECT_EQ(stopping.after(of_width(0.019), visits, 1), std::nullopt) << visits;
  EXPECT_EQ(stopping.after(of_width(0.019), 12, 1), VisitsEnd::precision) << "6, and 6 to confirm";
}

TEST(Stopping, WhatIsNotConfirmedBeginsAnew) {
  Stopping stopping(3, 0.02, 0);
  for (int visits = 1; visits < 12; visits++) stopping.after(of_width(0.019), visits, 1);
  EXPECT_EQ(stopping.after(of_width(0.021), 12, 1), std::nullopt);
  EXPECT_EQ(stopping.after(of_width(0.03), 13, 1), std::nullopt) << "too wide for a look";
  for (int visits = 14; visits < 28; visits++)
    EXPECT_EQ(stopping.after(of_width(0.0239), visits, 1), std::nullopt) << visits;
  EXPECT_EQ(stopping.after(of_width(0.019), 28, 1), VisitsEnd::precision) << "14, and 14 more";
}

TEST(Stopping, TimeAndNumberAreBounded) {
  Stopping timed(3, 0.02, 10);
  EXPECT_EQ(timed.after(of_width(0.1), 2, 11), std::nullopt) << "at least the rounds";
  EXPECT_EQ(timed.after(of_width(0.1), 3, 9.9), std::nullopt);
  EXPECT_EQ(timed.after(of_width(0.1), 4, 10), VisitsEnd::max_time);
  Stopping endless(3, 0.02, 0);
  for (int visits = 1; visits < kMostVisits; visits++)
    ASSERT_EQ(endless.after(of_width(0.1), visits, 1e6), std::nullopt) << visits;
  EXPECT_EQ(endless.after(of_width(0.1), kMostVisits, 1e6), VisitsEnd::max_visits);
}

// Cells of visits that scatter by `between` (lognormal), each of three samples with skewed noise.
struct Simulated {
  double covered = 0, visits = 0;
};
Simulated simulate(double between, double within, double precision, int cells) {
  Simulated found;
  Rng random = rng(7, "cells measured to a precision");
  // The median of three is what a visit counts with: the mean of its logarithm is the truth.
  const auto sample = [&] { return -within * std::log(1 - random.uniform()); };
  const auto middle = [](double a, double b, double c) {
    return std::max(std::min(a, b), std::min(std::max(a, b), c));
  };
  const double truth = within * (1.0 / 3 + 1.0 / 2);  // of the middle of three exponentials
  for (int cell = 0; cell < cells; cell++) {
    Stopping stopping(3, precision, 0);
    std::vector<double> times;
    std::vector<int64_t> sizes;
    while (true) {
      const double log = between * random.normal() + middle(sample(), sample(), sample());
      times.push_back(std::exp(log));
      sizes.push_back(1);
      if (sizes.size() < 2) continue;
      const Summary time = summarize(times, sizes);
      if (!stopping.after(time, std::ssize(sizes), 0)) continue;
      found.covered += time.ci_low <= std::exp(truth) && std::exp(truth) <= time.ci_high;
      found.visits += static_cast<double>(sizes.size());
      break;
    }
  }
  found.covered *= 100.0 / cells;
  found.visits /= cells;
  return found;
}

// 4000 cells: the standard error of a coverage is 0.34 percentage points.
TEST(Stopping, IntervalsThatEndVisitsCoverAsOftenAsTheySay) {
  for (const double between : {0.01, 0.02, 0.03})
    for (const double within : {0.0, 0.005, 0.01}) {
      const Simulated found = simulate(between, within, 0.02, 4000);
      const std::string what = fmt::format("between {}, within {}: {:.1f} % after {:.1f} visits",
                                           between, within, found.covered, found.visits);
      EXPECT_GE(found.covered, 93) << what;
      EXPECT_LE(found.covered, 97) << what;
    }
}

// The rules by which a witness has fallen and a row is noisy, on both sides of each bound.

using Noises = std::vector<Noise>;

TEST(Noisy, AWitnessFallsBelowAPartOfTheBest) {
  const Witness best{.flops_per_s = 100, .copy_bytes_per_s = 10};
  EXPECT_FALSE(fell({.flops_per_s = 86, .copy_bytes_per_s = 10}, best, true));
  EXPECT_TRUE(fell({.flops_per_s = 84, .copy_bytes_per_s = 10}, best, true));
  EXPECT_TRUE(fell({.flops_per_s = 84, .copy_bytes_per_s = 10}, best, false));
  EXPECT_TRUE(fell({.flops_per_s = 100, .copy_bytes_per_s = 8.4}, best, true));
  EXPECT_FALSE(fell({.flops_per_s = 100, .copy_bytes_per_s = 1}, best, false))
      << "what is bound by arithmetic does not wait for memory";
}

TEST(Noisy, RowsAreMarkedByRule) {
  const Disturbance quiet{.seconds = 2, .involuntary_switches = 100, .stolen_s = 0.15};
  EXPECT_EQ(noise_of(false, quiet, 1, 4), Noises());
  EXPECT_EQ(noise_of(true, quiet, 1, 4), Noises({Noise::witness}));
  Disturbance found = quiet;
  found.stolen_s = 0.17;  // of 8 seconds, over 2 %
  EXPECT_EQ(noise_of(false, found, 1, 4), Noises({Noise::steal}));
  EXPECT_EQ(noise_of(false, found, 1, 8), Noises()) << "of 16 seconds";
  found = quiet;
  found.involuntary_switches = 102;
  EXPECT_EQ(noise_of(false, found, 1, 4), Noises({Noise::switches}));
  EXPECT_EQ(noise_of(false, found, 2, 4), Noises()) << "of two threads";
  found.stolen_s = std::nullopt;
  EXPECT_EQ(noise_of(false, found, 2, 4), Noises());
  EXPECT_EQ(noise_of(false, {.seconds = 1e-3, .involuntary_switches = 1}, 1, 1), Noises());
}

}  // namespace
}  // namespace attn::precision_test
