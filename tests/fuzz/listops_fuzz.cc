// LRA's ListOps files: a tree is read with its label and solved, or cut to the length.
#include "tests/fuzz/folder_of.h"
#include "tests/fuzz/source_check.h"
#include "tests/fuzz/targets.h"

namespace attn::tasks {
TaskInfo listops();  // of the catalog, which would bring every task
}

namespace attn::fuzz {

void listops(std::string_view bytes) {
  static const TaskInfo info = tasks::listops();
  const FolderOf folder(bytes);
  const std::map<std::string, ParamValue> given = {{"data", folder.path()},
                                                   {"length", int64_t{24}}};
  std::unique_ptr<Task> task;
  if (!accepts([&] { task = info.build(given); })) return;
  check_examples(*task->source(), [](const Example& e) {
    require_tokens(e.tokens, 24, 16);
    require_label(e, 10);
    for (const int32_t position : e.evidence)
      require(position >= 0 && position < std::ssize(e.tokens), "evidence out of range");
  });
}

}  // namespace attn::fuzz
