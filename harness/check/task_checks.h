// The task under check, and the checks of labels and scores (task_scores.cc). Internal to
// harness/check.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "harness/check/subject.h"
#include "tasks/api/task.h"

namespace attn {

class TaskSubject {
 public:
  TaskSubject(const TaskInfo& info, const std::map<std::string, ParamValue>& given,
              attn_check::Level level)
      : info_(info), given_(given), level_(level) {}

  // One task for all checks, because a task with files reads them when it is made.
  const Task& task() const {
    if (!task_) task_ = make();
    return *task_;
  }
  std::unique_ptr<Task> make() const { return info_.build(given_); }
  // The number of examples of a split to check, at most the size of the split. It is smaller for
  // long examples, so that the checks take seconds at every length.
  int64_t count(Split split, int64_t times = 1) const {
    const int64_t wanted = times * some(level_ == attn_check::Level::full ? 64 : 16);
    return std::min(wanted, task().count(split));
  }
  int64_t some(int64_t most) const {
    constexpr int64_t kLong = 2048, kFewest = 8;
    return std::max(kFewest, std::min(most, most * kLong / task().shape().length));
  }

 private:
  const TaskInfo& info_;
  const std::map<std::string, ParamValue>& given_;
  attn_check::Level level_;
  mutable std::unique_ptr<Task> task_;
};

void check_balance(const TaskSubject& subject, Verdict& verdict);
void check_chance(const TaskSubject& subject, Verdict& verdict);
void check_shortcuts(const TaskSubject& subject, Verdict& verdict);

}  // namespace attn
