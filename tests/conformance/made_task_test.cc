// The task that `attnbench new task` makes passes the contract of tasks as it is made.
#include <gtest/gtest.h>

#include "harness/check/contract.h"
#include "tasks/api/task.h"

namespace attn::tasks {
TaskInfo made_lookup();  // made from templates/ by tests/conformance/templates.cmake
}

namespace attn::made_task_test {
namespace {

TEST(MadeTask, PassesEveryCheck) {
  const auto results = check_task(tasks::made_lookup(), {}, attn_check::Level::full);
  EXPECT_GE(results.size(), 9u);
  for (const attn_check::Result& result : results) {
    EXPECT_NE(result.outcome, attn_check::Outcome::failed) << result.name << ": " << result.detail;
  }
}

}  // namespace
}  // namespace attn::made_task_test
