// Ends of a child process, as statuses with reasons that fit one line of a row.
#include "harness/process/outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

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
  const Reply late = outcome_of(ended(End::timeout, SIGKILL), 1.5);
  EXPECT_EQ(late.status, Status::timeout);
  EXPECT_EQ(late.reason, "not done after 1.5 s");
  EXPECT_EQ(outcome_of(ended(End::signalled, SIGKILL), 1).status, Status::oom);
  const Reply crash = outcome_of(ended(End::signalled, SIGABRT, "", "assertion\nbroke\n"), 1);
  EXPECT_EQ(crash.status, Status::failed);
  EXPECT_NE(crash.reason.find("signal 6"), std::string::npos);
  EXPECT_TRUE(crash.reason.ends_with(": assertion; broke"));
  EXPECT_EQ(outcome_of(ended(End::exited, 2, "{}"), 1).status, Status::failed);
}

TEST(Outcome, TakesAReplyAndRefusesAnythingElse) {
  EXPECT_TRUE(
      outcome_of(ended(End::exited, 0, R"({"status":"ok","reason":null,"x":1})"), 1).is_ok());
  for (const char* text :
       {"", "[]", "{", "{}", R"({"status":"ok"})", R"({"status":"ok","reason":"x"})",
        R"({"status":"failed","reason":null})", R"({"status":7,"reason":null})",
        R"({"status":"fine","reason":"x"})", R"({"status":"skipped","reason":"x"})",
        R"({"status":"timeout","reason":"x"})", R"({"status":"ok","reason":""})"})
    EXPECT_EQ(outcome_of(ended(End::exited, 0, text), 1).found, Json()) << text;
}

TEST(Outcome, WhatAChildSaysIsCutAndOnOneLine) {
  const std::string status(2000, 'x');
  const Reply reply =
      outcome_of(ended(End::exited, 0, R"({"status":"a\n)" + status + R"(","reason":null})"), 1);
  EXPECT_LT(reply.reason.size(), 200u);
  EXPECT_EQ(reply.reason.find('\n'), std::string::npos) << reply.reason;
}

TEST(Outcome, ReasonsArePrintableAndShort) {
  EXPECT_EQ(one_line("a\nb\x01\xff z \n\n"), "a; b   z");
  EXPECT_EQ(one_line(std::string(600, 'x')).size(), 504u);
  EXPECT_EQ(one_line("tail kept", 4), "... kept");
}

}  // namespace
}  // namespace attn::outcome_test
