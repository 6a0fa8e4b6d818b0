// The list of all tasks, in the order of listings and plots.
#pragma once

#include <string_view>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

const std::vector<TaskInfo>& all_tasks();
const TaskInfo& find_task(
    std::string_view name);  // Error for an unknown name; it names the nearest known one

}  // namespace attn
