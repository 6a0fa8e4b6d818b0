// A tiny task, right and with one fault at a time: what each task check must catch, and nothing
// else.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

TaskInfo tiny_task();       // the label is the sum of two tokens modulo 4
TaskInfo tiny_read_task();  // the same as if read from files of 20 examples each
// A number to predict, an output sequence, edges, values in place of tokens, two documents, and a
// label for each position.
std::vector<TaskInfo> tiny_tasks_of_each_answer();

struct BrokenTask {
  TaskInfo info;
  std::vector<std::string> red;  // the checks that must fail, in the order in which they run
};
void PrintTo(const BrokenTask& broken, std::ostream* out);
std::vector<BrokenTask> broken_tasks();

}  // namespace attn
