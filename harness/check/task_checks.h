// What the task checks share, and those that count labels and scores (task_scores.cc).
// Internal to harness/check.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "harness/check/subject.h"
#include "tasks/task.h"

namespace attn {

struct TaskSubject {
  const TaskInfo& info;
  const std::map<std::string, ParamValue>& given;
  attn_check::Level level;
  int64_t count() const { return level == attn_check::Level::full ? 64 : 16; }
  std::unique_ptr<Task> make() const { return info.build(given); }
};

void check_balance(const TaskSubject& subject, Verdict& verdict);
void check_chance(const TaskSubject& subject, Verdict& verdict);
void check_shortcuts(const TaskSubject& subject, Verdict& verdict);

}  // namespace attn
