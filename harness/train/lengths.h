// Length generalisation: the task at multiples of its training length, and why a model has no
// answer there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/train/train.h"

namespace attn {

struct Stretch {
  int64_t factor = 1, length = 0;
  std::unique_ptr<Task> task;  // null: `reason` says why
  std::string reason{};
};

// The task at 2, 4, ... times its parameter `length` (and `min_length`), up to the training
// setting `stretch`. `task` is the one that is trained on.
std::vector<Stretch> stretched(const TrainRequest& request, const Task& task);

}  // namespace attn
