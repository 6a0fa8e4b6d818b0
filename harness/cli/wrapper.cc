// Hands a verb to the Python that does it; see wrapper.h.
#include "harness/cli/wrapper.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/io_error.h"
#include "harness/process/process.h"
#include "harness/process/python_process.h"

namespace attn::cli {

void hand_to_python(const Verb& verb, const Arguments& arguments) {
  namespace fs = std::filesystem;
  const fs::path program = own_program();
  // The program of a clone lies in <repository>/build/<preset>/.
  const fs::path wrapper = program.parent_path().parent_path().parent_path() / "scripts" / "bench";
  std::vector<std::string> words = {wrapper.string()};
  if (!fs::exists(wrapper)) {
    ATTN_CHECK(!package_folder().empty(),
               "{} is done in Python, and the package attnbench does not lie by '{}'; install it "
               "with the program (pip install or cmake --install), or say scripts/bench {} in a "
               "clone of the repository",
               verb.name, program.string(), verb.name);
    offer_package();
    setenv("ATTNBENCH_PROGRAM", program.c_str(), 1);
    words = {python_interpreter(), "-m", "attnbench"};
  }
  words.push_back(verb.name);
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
  throw_io_error(fmt::format("cannot start '{}': {}", words[0], std::strerror(errno)));
}

}  // namespace attn::cli
