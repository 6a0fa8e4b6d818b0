// The list of tasks, made by CMake from tasks/CMakeLists.txt.
#include "tasks/catalog.h"

#include "core/base/check.h"

namespace attn {

#define PLUGIN(name) TaskInfo name();
namespace tasks {
#include "tasks/list.inc"
}
#undef PLUGIN

const std::vector<TaskInfo>& all_tasks() {
#define PLUGIN(name) tasks::name(),
  static const std::vector<TaskInfo> list = {
#include "tasks/list.inc"
  };
#undef PLUGIN
  return list;
}

const TaskInfo& find_task(std::string_view name) {
  std::vector<std::string> names;
  for (const TaskInfo& info : all_tasks()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  throw_error(fmt::format("unknown task '{}'; nearest is '{}'", name, nearest(name, names)));
}

}  // namespace attn
