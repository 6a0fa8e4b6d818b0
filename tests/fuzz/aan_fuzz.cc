// The pairs of the ACL Anthology Network: two texts of bytes and a label.
#include "tasks/data/sources.h"
#include "tests/fuzz/folder_of.h"
#include "tests/fuzz/source_check.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {

void aan(std::string_view bytes) {
  const FolderOf folder(bytes);
  std::unique_ptr<Source> source;
  if (!accepts([&] { source = data::aan_tsv(folder.path(), 32); })) return;
  check_examples(*source, [](const Example& e) {
    require_tokens(e.tokens, 32, 257);
    require_tokens(e.second, 32, 257);
    require_label(e, 2);
  });
}

}  // namespace attn::fuzz
