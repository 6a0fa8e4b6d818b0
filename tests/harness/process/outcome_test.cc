// What becomes of a child process: its outcome, and its group when it ends.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/process/outcome.h"
#include "harness/process/process.h"
#include "tests/said.h"

namespace {

int groups_signalled = 0, groups_of_strangers = 0;

}  // namespace

// In place of the system's: looks whether the group's leader is still a child of this process.
extern "C" int kill(pid_t target, int signal) noexcept {
  if (target < -1) {
    siginfo_t unused{};
    const auto leader = static_cast<id_t>(-target);
    groups_signalled++;
    if (waitid(P_PID, leader, &unused, WEXITED | WNOHANG | WNOWAIT) != 0) groups_of_strangers++;
  }
  return static_cast<int>(syscall(SYS_kill, target, signal));
}

namespace attn::outcome_test {
namespace {

// Ends of a child process, as statuses with reasons that fit one line of a row.

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
  EXPECT_TRUE(says(crash.reason, "signal 6"));
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
  EXPECT_FALSE(says(reply.reason, "\n"));
}

TEST(Outcome, ReasonsArePrintableAndShort) {
  EXPECT_EQ(one_line("a\nb\x01\xff z \n\n"), "a; b   z");
  EXPECT_EQ(one_line(std::string(600, 'x')).size(), 504u);
  EXPECT_EQ(one_line("tail kept", 4), "... kept");
}

// A child's process group is signalled only while the child is there: its number may be given to
// strangers once it is reaped.

class ProcessGroup : public testing::Test {
 protected:
  void SetUp() override { groups_signalled = groups_of_strangers = 0; }
  void TearDown() override {
    EXPECT_GT(groups_signalled, 0);
    EXPECT_EQ(groups_of_strangers, 0);
  }
};

TEST_F(ProcessGroup, IsKilledBeforeItsLeaderIsReaped) {
  ChildPool pool;
  pool.start(0, {"/bin/sh", {"-c", "sleep 30 & echo $!"}, "", 0});
  const auto ended = pool.wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->second.end, ChildResult::End::exited);
}

TEST_F(ProcessGroup, OfALateChildToo) {
  ChildPool pool;
  pool.start(0, {"/bin/sh", {"-c", "sleep 30"}, "", 0.1});
  const auto ended = pool.wait();
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->second.end, ChildResult::End::timeout);
}

TEST_F(ProcessGroup, OfChildrenThatEndedUnseenToo) {
  ChildPool pool;
  pool.start(0, {"/bin/sh", {"-c", "exit 0"}, "", 0});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  pool.kill_all();
}

}  // namespace
}  // namespace attn::outcome_test
