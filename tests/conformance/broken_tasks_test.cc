// Tasks with a planted fault fail the check meant for it; the task of `attnbench new` fails none.
#include <gtest/gtest.h>

#include "harness/check/contract.h"
#include "tasks/api/task.h"
#include "tests/conformance/planted.h"

namespace attn::tasks {
TaskInfo made_lookup();  // made from templates/ by tests/conformance/templates.cmake
}

namespace attn::broken_tasks_test {
namespace {

// The checks of tasks check: a right task passes everything, each planted fault turns exactly the
// intended checks red.

using attn_check::Level;
using attn_check::Outcome;

TEST(TinyTask, PassesEveryCheck) {
  const auto results = check_task(tiny_task(), {}, Level::full);
  EXPECT_TRUE(all_passed(results)) << lines(results);
  EXPECT_EQ(results.size(), task_check_names().size());
}

// The same under every seed, and fewer examples than are asked for.
TEST(TinyTask, PassesEveryCheckWhenReadFromFiles) {
  const auto results = check_task(tiny_read_task(), {}, Level::full);
  EXPECT_TRUE(all_passed(results)) << lines(results);
}

TEST(TinyTask, PassesEveryCheckWhateverItsAnswersAre) {
  for (const TaskInfo& info : tiny_tasks_of_each_answer()) {
    const auto results = check_task(info, {}, Level::full);
    EXPECT_TRUE(all_passed(results)) << lines(results);
    EXPECT_EQ(results.size(), task_check_names().size());
  }
}

TEST(TaskPreset, IsChecked) {
  TaskInfo info = tiny_task();
  info.presets = {{"two", "a preset", {{"train_examples", int64_t{2}}}}};
  const auto results = check_task(info, {{"preset", std::string("two")}}, Level::quick, "examples");
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcome, Outcome::passed) << results[0].detail;
  EXPECT_EQ(results[0].subject, "tiny[train_examples=2]");
}

class BrokenTasks : public testing::TestWithParam<BrokenTask> {};
TEST_P(BrokenTasks, TurnsExactlyTheIntendedCheckRed) {
  const auto results = check_task(GetParam().info, {}, Level::full);
  EXPECT_EQ(red(results), GetParam().red) << lines(results);
}
INSTANTIATE_TEST_SUITE_P(Planted, BrokenTasks, testing::ValuesIn(broken_tasks()),
                         [](const auto& one) { return one.param.info.name; });

// The task that `attnbench new task` makes passes the contract of tasks as it is made.

TEST(MadeTask, PassesEveryCheck) {
  const auto results = check_task(tasks::made_lookup(), {}, attn_check::Level::full);
  EXPECT_GE(results.size(), 9u);
  for (const attn_check::Result& result : results) {
    EXPECT_NE(result.outcome, attn_check::Outcome::failed) << result.name << ": " << result.detail;
  }
}

}  // namespace
}  // namespace attn::broken_tasks_test
