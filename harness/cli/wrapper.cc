// Hands a verb to scripts/bench, which starts the Python that does it; see wrapper.h.
#include "harness/cli/wrapper.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/io_error.h"

namespace attn::cli {

void hand_to_wrapper(const Verb& verb, const Arguments& arguments) {
  namespace fs = std::filesystem;
  // The program lies in <repository>/build/<preset>/.
  std::error_code ignored;
  const fs::path wrapper =
      fs::read_symlink("/proc/self/exe", ignored).parent_path().parent_path().parent_path() /
      "scripts" / "bench";
  ATTN_CHECK(fs::exists(wrapper),
             "'{}' is done by the repository's scripts/bench, which is not beside this program",
             verb.name);
  std::vector<std::string> words = {wrapper.string(), verb.name};
  // A name that begins with a dash, after "--", would be read as an option there.
  for (const std::string& word : arguments.words())
    words.push_back(word.starts_with('-') ? "./" + word : word);
  for (const Option& option : verb.options)
    for (const std::string& value : arguments.all(option.name)) {
      words.push_back(option.value.empty() ? "--" + option.name : "--" + option.name + "=" + value);
    }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  throw_io_error(fmt::format("cannot start '{}': {}", wrapper.string(), std::strerror(errno)));
}

}  // namespace attn::cli
