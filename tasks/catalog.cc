// The list of tasks, made by CMake from tasks/CMakeLists.txt.
#include "tasks/catalog.h"

#include <functional>
#include <map>
#include <utility>

#include "core/base/check.h"
#include "core/base/nearest.h"
#include "core/base/plugin_name.h"

namespace attn {

#define PLUGIN(name) TaskInfo name();
namespace tasks {
#include "tasks/list.inc"
}
#undef PLUGIN

namespace {

std::vector<TaskInfo>& task_list() {
#define PLUGIN(name) tasks::name(),
  static std::vector<TaskInfo> list = {
#include "tasks/list.inc"
  };
#undef PLUGIN
  return list;
}

// File hashes by the names of their tasks.
std::map<std::string, std::string, std::less<>>& task_files() {
  static std::map<std::string, std::string, std::less<>> files;
  return files;
}

}  // namespace

const std::vector<TaskInfo>& all_tasks() { return task_list(); }

const TaskInfo* task_named(std::string_view name) {
  for (const TaskInfo& info : all_tasks())
    if (info.name == name) return &info;
  return nullptr;
}

const TaskInfo& find_task(std::string_view name) {
  if (const TaskInfo* const info = task_named(name)) return *info;
  std::vector<std::string> names;
  for (const TaskInfo& info : all_tasks()) names.push_back(info.name);
  throw_error(fmt::format("unknown task '{}'{}", name, nearest_note(name, names)));
}

void add_task(TaskInfo info, const std::string& file_hash) {
  ATTN_CHECK(is_plugin_name(info.name), "task '{}': {}", info.name, kPluginNameRule);
  ATTN_CHECK(!task_named(info.name), "there is a task '{}' already; give it another name",
             info.name);
  ATTN_CHECK(info.make, "task '{}' has no `make`; make_task<Class> makes one", info.name);
  task_files()[info.name] = file_hash;
  task_list().push_back(std::move(info));
}

std::string task_plugin(std::string_view name) {
  const auto file = task_files().find(name);
  return file == task_files().end() ? "" : file->second;
}

}  // namespace attn
