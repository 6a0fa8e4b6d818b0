// A tiny task, right and with one fault at a time: what each task check must catch, and nothing
// else.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

TaskInfo tiny_task();           // the label is the first token modulo 4
TaskInfo tiny_read_task();      // the same as if read from files of 20 examples each
TaskInfo tiny_number_task();    // a number to predict: the first token
TaskInfo tiny_sequence_task();  // an output sequence: the first two tokens modulo 4
TaskInfo tiny_edges_task();     // the label as above, and who may see whom

struct BrokenTask {
  TaskInfo info;
  std::vector<std::string> red;  // the checks that must fail, in the order in which they run
};
void PrintTo(const BrokenTask& broken, std::ostream* out);
std::vector<BrokenTask> broken_tasks();

}  // namespace attn
