// Pathfinder's pictures and the metadata that name them.
#include "tasks/data/sources.h"
#include "tests/fuzz/folder_of.h"
#include "tests/fuzz/source_check.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {

void pathfinder(std::string_view bytes) {
  const FolderOf folder(bytes);
  const auto example = [](std::span<const uint8_t> grey, int32_t label) {
    Example e{.target = {label}};
    for (const uint8_t level : grey) e.tokens.push_back(level + 1);
    return e;
  };
  std::unique_ptr<Source> source;
  if (!accepts([&] { source = data::pathfinder_png(folder.path(), 32, 6, example); })) return;
  check_examples(*source, [](const Example& e) {
    require(e.tokens.size() == 1024, "a picture of another size");
    require_label(e, 2);
  });
}

}  // namespace attn::fuzz
