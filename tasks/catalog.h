// Every task of the suite, in the order in which they are listed and plotted.
#pragma once

#include <string_view>
#include <vector>

#include "tasks/api/task.h"

namespace attn {

const std::vector<TaskInfo>& all_tasks();
const TaskInfo& find_task(std::string_view name);  // Error naming the nearest one when unknown

}  // namespace attn
