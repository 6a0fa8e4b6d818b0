// CIFAR-10's binary batches: records of a label and a picture.
#include "tasks/data/sources.h"
#include "tests/fuzz/folder_of.h"
#include "tests/fuzz/source_check.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {

void cifar10(std::string_view bytes) {
  const FolderOf folder(bytes);
  const auto example = [](std::span<const uint8_t> grey, int32_t label) {
    Example e{.target = {label}};
    for (const uint8_t level : grey) e.tokens.push_back(level + 1);
    return e;
  };
  std::unique_ptr<Source> source;
  if (!accepts([&] { source = data::cifar10(folder.path(), example); })) return;
  check_examples(*source, [](const Example& e) {
    require(e.tokens.size() == 1024, "a picture of another size");
    require_tokens(e.tokens, 1024, 257);
    require_label(e, 10);
  });
}

}  // namespace attn::fuzz
