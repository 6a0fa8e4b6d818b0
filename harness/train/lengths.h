// Length generalisation: a task with other parameters than in training, or at multiples of its
// training length, or the reason why a model cannot be scored there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/train/train.h"

namespace attn {

struct OtherTask {
  int64_t length = 0;          // of the longest sequence; 0: no such task can be made
  std::unique_ptr<Task> task;  // null: see `reason`
  std::string reason{};
};

// The task of the request with `params`. `task` is the task of the training.
OtherTask other_task(const TrainRequest& request, const Task& task,
                     const std::map<std::string, ParamValue>& params);

struct Stretch {
  int64_t factor = 1, length = 0;
  std::unique_ptr<Task> task;  // null: see `reason`
  std::string reason{};
};

// The task at 2, 4, ... times its parameter `length` (and `min_length`), up to the factor of the
// training setting `stretch`. `task` is the task of the training.
std::vector<Stretch> stretched(const TrainRequest& request, const Task& task);

}  // namespace attn
