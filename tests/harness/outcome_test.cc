// Ends of a child process, as statuses with reasons that fit one line of a row.
#include "harness/sweep/outcome.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace attn {
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

TEST(Outcome, TakesAReplyAndRefusesAnythingElse) {
  EXPECT_EQ(reply_of(ended(End::exited, 0, R"({"status":"ok","reason":null,"x":1})"), 1)["x"], 1);
  for (const char* text : {"", "[]", "{", "{}", R"({"status":"ok"})"})
    EXPECT_EQ(reply_of(ended(End::exited, 0, text), 1)["status"], "failed") << text;
}

TEST(Outcome, ReasonsArePrintableAndShort) {
  EXPECT_EQ(one_line("a\nb\x01\xff z \n\n"), "a; b   z");
  EXPECT_EQ(one_line(std::string(600, 'x')).size(), 504u);
  EXPECT_EQ(one_line("tail kept", 4), "... kept");
}

}  // namespace
}  // namespace attn
