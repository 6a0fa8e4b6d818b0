// attnbench plot: hands over to the wrapper script, which starts the Python that draws.
// The pictures need Python; the program itself does not.
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/io_error.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

int run_plot(const Arguments& arguments) {
  namespace fs = std::filesystem;
  // The program lies in <repository>/build/<preset>/.
  std::error_code ignored;
  const fs::path wrapper =
      fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path().parent_path() /
      "scripts" / "bench";
  ATTN_CHECK(fs::exists(wrapper),
             "plots are drawn by the repository's scripts/bench, which is not beside this program");
  std::vector<std::string> words = {wrapper.string(), "plot"};
  for (const std::string& word : arguments.words()) words.push_back(word);
  if (arguments.has("output")) words.insert(words.end(), {"-o", arguments.get("output")});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  throw_io_error(fmt::format("cannot start '{}': {}", wrapper.string(), std::strerror(errno)));
}

}  // namespace

Verb plot_verb() {
  return {.name = "plot",
          .usage = "[ROWS...] [-o FOLDER]",
          .summary = "pictures and their data from rows; default: the newest rows in results/",
          .options = {{"output", 'o', "FOLDER", "default: beside the rows"}},
          .max_words = 1000,
          .run = run_plot};
}

}  // namespace attn::cli
