// The list of all tasks, in the order of listings and plots: those of this program, then those of
// plug-ins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

const std::vector<TaskInfo>& all_tasks();
const TaskInfo& find_task(
    std::string_view name);  // Error for an unknown name; it names the nearest known one
const TaskInfo* task_named(std::string_view name);  // null for an unknown name

// Adds the task of a plug-in, a file with this hash, to the end of the list. Error where the name
// is taken or no name. Pointers into all_tasks() from before the call are invalid after it.
void add_task(TaskInfo info, const std::string& file_hash);
// The hash of the plug-in that the task is from; "" for a task of this program.
std::string task_plugin(std::string_view name);

}  // namespace attn
