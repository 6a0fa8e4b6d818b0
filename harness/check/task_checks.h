// The task under check, with its first examples, and the checks of tasks by the source that holds
// them. Internal to harness/check.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

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
  const TaskInfo& info() const { return info_; }
  // Whether the parameters are those of a spec that names none.
  bool defaults() const { return task().params().values() == info_.resolve().values(); }
  // The first `count` examples of a split under seed 1. They are drawn once for all checks.
  std::span<const Example> examples(Split split, int64_t count) const {
    std::vector<Example>& drawn = drawn_[split];
    while (std::ssize(drawn) < count) drawn.push_back(task().example(1, split, std::ssize(drawn)));
    return {drawn.data(), static_cast<size_t>(count)};
  }
  // The number of examples of a split to check, at most the size of the split. It is smaller for
  // long examples, so that the checks take seconds at every length.
  int64_t count(Split split, int64_t times = 1) const {
    const int64_t wanted = times * some(level_ == attn_check::Level::full ? 64 : 16);
    return std::min(wanted, task().count(split));
  }
  int64_t some(int64_t most) const {
    constexpr int64_t kLongInput = 2048, kFewest = 8;
    return std::max(kFewest, std::min(most, most * kLongInput / task().shape().length));
  }

 private:
  const TaskInfo& info_;
  const std::map<std::string, ParamValue>& given_;
  attn_check::Level level_;
  mutable std::unique_ptr<Task> task_;
  mutable std::map<Split, std::vector<Example>> drawn_;
};

inline constexpr Split kSplits[] = {Split::train, Split::validation, Split::test};

// task_declared.cc
void check_shape(const TaskSubject& subject, Verdict& verdict);
void check_presets(const TaskSubject& subject, Verdict& verdict);
// task_evidence.cc
void check_evidence(const TaskSubject& subject, Verdict& verdict);
void check_distances(const TaskSubject& subject, Verdict& verdict);
// task_scores.cc
void check_balance(const TaskSubject& subject, Verdict& verdict);
void check_chance(const TaskSubject& subject, Verdict& verdict);
void check_shortcuts(const TaskSubject& subject, Verdict& verdict);

}  // namespace attn
