// The list of tasks. Add yours as one word here and one in CMakeLists.txt.
#include "tasks/catalog.h"

#include "core/check.h"

#define ATTN_TASKS(X) \
  X(listops)          \
  X(text)             \
  X(retrieval)        \
  X(mqar)             \
  X(image)            \
  X(pathfinder)       \
  X(pathx)            \
  X(induction)        \
  X(copy)             \
  X(selective_copy)   \
  X(needle)           \
  X(majority)         \
  X(parity)           \
  X(fuzzy_recall)     \
  X(noisy_recall)     \
  X(compression)      \
  X(memorization)     \
  X(adding)           \
  X(frames)           \
  X(tagging)          \
  X(graph)            \
  X(reverse)          \
  X(sort)             \
  X(translate)

namespace attn {

#define ATTN_DECLARE(name) TaskInfo name();
namespace tasks {
ATTN_TASKS(ATTN_DECLARE)
}
#undef ATTN_DECLARE

const std::vector<TaskInfo>& all_tasks() {
#define ATTN_CALL(name) tasks::name(),
  static const std::vector<TaskInfo> list = {ATTN_TASKS(ATTN_CALL)};
#undef ATTN_CALL
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
