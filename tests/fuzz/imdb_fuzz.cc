// Folders of IMDb reviews: names with a number and a rating, and texts of bytes. Every file is
// there and can be read, so the system has nothing to refuse but a folder in place of a file.
#include "core/base/io_error.h"
#include "tasks/data/sources.h"
#include "tests/fuzz/folder_of.h"
#include "tests/fuzz/source_check.h"
#include "tests/fuzz/targets.h"

namespace attn::fuzz {

void imdb(std::string_view bytes) {
  const FolderOf folder(bytes);
  std::unique_ptr<Source> source;
  const bool taken = accepts([&] {
    try {
      source = data::imdb(folder.path(), 32);
    } catch (const IoError& error) {
      require(std::string_view(error.what()).find(".txt': No such file") == std::string::npos,
              "reads a file that is not listed: " + std::string(error.what()));
      throw;
    }
  });
  if (!taken) return;
  check_examples(*source, [](const Example& e) {
    require_tokens(e.tokens, 32, 257);
    require_label(e, 2);
  });
}

}  // namespace attn::fuzz
