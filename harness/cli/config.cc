// attnbench config: where the headers for plug-ins and the package of CMake lie, in an installed
// program (cmake --install, a Debian package, a wheel).
#include <algorithm>
#include <filesystem>
#include <vector>

#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/process/process.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;

// PREFIX/lib, lib64 or lib/x86_64-linux-gnu, as the distribution has it; "": none has the package.
fs::path cmake_folder(const fs::path& prefix) {
  std::error_code unknown;
  std::vector<fs::path> libraries = {prefix / "lib", prefix / "lib64"};
  for (const auto& entry : fs::directory_iterator(prefix / "lib", unknown))
    if (entry.is_directory(unknown)) libraries.push_back(entry.path());
  std::sort(libraries.begin() + 2, libraries.end());
  for (const fs::path& library : libraries) {
    const fs::path folder = library / "cmake" / "attnbench";
    if (fs::exists(folder / "attnbenchConfig.cmake", unknown)) return folder;
  }
  return {};
}

int run_config(const Arguments& arguments) {
  const fs::path program = own_program(), prefix = program.parent_path().parent_path(),
                 cmake = cmake_folder(prefix);
  ATTN_CHECK(!cmake.empty(),
             "no headers are installed by '{}'; in the source tree 'cmake --install build/native "
             "--prefix ~/attnbench' installs them, with a program of their own",
             program.string());
  if (arguments.has("cmake"))
    print(cmake.string() + "\n");
  else
    print(fmt::format("program   {}\nheaders   {}\ncmake     {}\n", program.string(),
                      (prefix / "include" / "attnbench").string(), cmake.string()));
  return kOk;
}

}  // namespace

Verb config_verb() {
  return {.name = "config",
          .usage = "[--cmake]",
          .summary = "where the headers for plug-ins are",
          .options = {{"cmake", 0, "",
                       "print the folder of the CMake package alone, for "
                       "-Dattnbench_DIR=$(attnbench config --cmake)"}},
          .max_words = 0,
          .run = run_config};
}

}  // namespace attn::cli
