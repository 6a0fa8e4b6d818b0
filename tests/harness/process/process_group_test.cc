// A child's process group is signalled only while the child is there: its number may be given to
// strangers once it is reaped.
#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "harness/process/process.h"

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

namespace attn::process_group_test {
namespace {

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
}  // namespace attn::process_group_test
