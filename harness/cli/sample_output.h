// Where `attnbench sample` writes: JSON Lines, or a folder in a task's released format.
#pragma once

#include <cstdint>
#include <string>

#include "tasks/api/task.h"

namespace attn::cli {

// Examples 0 .. count-1 of one split, a JSON line each, to `path`; "-": standard output.
void sample_lines(const Task& task, uint64_t seed, Split split, int64_t count,
                  const std::string& path);

// All three splits below the folder `path`: `count` examples of validation and of test, and of
// train as many times more as the format's shares need. `what` is the task's spec, kept in a note
// beside the data. Error when the folder is not empty, unless `force` is set and a note shows that
// an earlier sample is there, which is then replaced.
void sample_released(const TaskInfo& info, const Task& task, uint64_t seed, int64_t count,
                     const std::string& path, const std::string& what, bool force);

}  // namespace attn::cli
