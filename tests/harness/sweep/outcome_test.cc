// Ends of a child process, as statuses with reasons that fit one line of a row.
#include "harness/sweep/outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <limits>

namespace attn::outcome_test {
namespace {

using End = ChildResult::End;

ChildResult ended(End end, int code, const std::string& output = "",
                  const std::string& error = "") {
  ChildResult result;
  result.end = end;
  result.code = code;
  result.output = output;
  result.error_tail = error;
  return result;
}

TEST(Outcome, NamesEachEnd) {
  EXPECT_EQ(reply_of(ended(End::timeout, SIGKILL), 1.5),
            Json({{"status", "timeout"}, {"reason", "not done after 1.5 s"}}));
  EXPECT_EQ(reply_of(ended(End::signalled, SIGKILL), 1)["status"], "oom");
  const Json crash = reply_of(ended(End::signalled, SIGABRT, "", "assertion\nbroke\n"), 1);
  EXPECT_EQ(crash["status"], "failed");
  EXPECT_NE(crash["reason"].get<std::string>().find("signal 6"), std::string::npos);
  EXPECT_TRUE(crash["reason"].get<std::string>().ends_with(": assertion; broke"));
  EXPECT_EQ(reply_of(ended(End::exited, 2, "{}"), 1)["status"], "failed");
}

TEST(Outcome, FiguresThatAreNotFiniteAreNoResult) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Json sound = {{"status", "ok"}, {"metrics", {{"test", 0.5}, {"bins", {1, 2.5}}}}};
  EXPECT_EQ(with_finite_figures(sound, "diverged"), sound);
  Json broken = sound;
  broken["metrics"]["test"] = kNan;
  broken["samples"] = {{{"step", 1}, {"validation", nullptr}}};
  EXPECT_EQ(with_finite_figures(broken, "diverged"),
            Json({{"status", "diverged"},
                  {"reason", "metrics.test is not a finite number"},
                  {"samples", broken["samples"]}}));
  broken["samples"][0]["step"] = kNan;
  EXPECT_FALSE(with_finite_figures(broken, "failed").contains("samples"));
  broken = sound;
  broken["metrics"]["bins"][1] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with_finite_figures(broken, "failed")["reason"],
            "metrics.bins[1] is not a finite number");
}

TEST(Outcome, TakesAReplyAndRefusesAnythingElse) {
  EXPECT_EQ(reply_of(ended(End::exited, 0, R"({"status":"ok","reason":null,"x":1})"), 1)["x"], 1);
  for (const char* text :
       {"", "[]", "{", "{}", R"({"status":"ok"})", R"({"status":"ok","reason":"x"})",
        R"({"status":"failed","reason":null})", R"({"status":7,"reason":null})",
        R"({"status":"fine","reason":"x"})"})
    EXPECT_EQ(reply_of(ended(End::exited, 0, text), 1)["status"], "failed") << text;
}

TEST(Outcome, ReasonsArePrintableAndShort) {
  EXPECT_EQ(one_line("a\nb\x01\xff z \n\n"), "a; b   z");
  EXPECT_EQ(one_line(std::string(600, 'x')).size(), 504u);
  EXPECT_EQ(one_line("tail kept", 4), "... kept");
}

}  // namespace
}  // namespace attn::outcome_test
