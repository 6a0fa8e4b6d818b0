// See python_process.h. What the package prints is JSON; what it says on stderr is for people, and
// its last line becomes an Error here.
#include "harness/process/python_process.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "harness/store/parse.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSharedPackage = "share/attnbench/python";  // cmake/install.cmake
constexpr int kToldCode = 2;  // of a process that said what is wrong in one line

fs::path program_folder() { return own_program().parent_path(); }

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::optional<fs::path> on_path(const std::string& name) {
  const char* const text = getenv("PATH");
  std::string folder;
  for (const char c : std::string(text ? text : "") + ":") {
    if (c != ':') {
      folder += c;
      continue;
    }
    if (fs::path file = fs::path(folder) / name; !folder.empty() && is_program(file)) return file;
    folder.clear();
  }
  return std::nullopt;
}

// Links to the package's sources are there before its extension is compiled.
bool has_extension(const fs::path& package) {
  std::error_code none;  // then there is nothing to iterate over
  for (const fs::directory_entry& entry : fs::directory_iterator(package, none))
    if (entry.path().extension() == ".so") return true;
  return false;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.find_last_of('\n') + 1);
}

}  // namespace

std::string package_folder() {
  const fs::path folder = program_folder(), above = folder.parent_path();
  if (folder.filename() == "bin" && fs::exists(above / "_cell.py")) return above.parent_path();
  if (const fs::path shared = above / kSharedPackage; fs::exists(shared / "attnbench"))
    return shared;
  return has_extension(folder / "package" / "attnbench") ? folder / "package" : fs::path();
}

void offer_package() {
  static bool done = false;
  if (std::exchange(done, true)) return;
  const std::string found = package_folder();
  if (found.empty()) return;
  const char* const before = getenv("PYTHONPATH");
  setenv("PYTHONPATH", (before && *before ? found + ":" + before : found).c_str(), 1);
}

std::string python_interpreter() {
  const char* const given = getenv(kPythonVariable);
  if (given && *given) {
    const std::string name = given;
    const auto found = name.find('/') == std::string::npos ? on_path(name) : fs::path(name);
    ATTN_CHECK(found && is_program(*found),
               "{}='{}' is no program; name a Python interpreter that has torch and the package "
               "attnbench",
               kPythonVariable, name);
    return found->string();
  }
  // A program of a clone lies in <clone>/build/<preset>/.
  const fs::path venv =
      program_folder().parent_path().parent_path() / ".venv-python" / "bin" / "python";
  if (is_program(venv)) return venv.string();
  const auto found = on_path("python3");
  ATTN_CHECK(found, "no python3 is on PATH; name an interpreter in {}", kPythonVariable);
  return found->string();
}

ChildSpec package_process(std::vector<std::string> words, std::string input, double timeout_s) {
  offer_package();
  words.insert(words.begin(), {"-m", "attnbench._cell"});
  return {python_interpreter(), std::move(words), std::move(input), timeout_s};
}

Json printed_by(const ChildSpec& process, const std::string& file) {
  ChildPool pool;
  pool.start(0, process);
  const auto ended = pool.wait();
  ATTN_CHECK(ended, "interrupted");
  const ChildResult& result = ended->second;
  ATTN_CHECK(result.end != ChildResult::End::timeout, "'{}': Python took over {:g} s to load it",
             file, process.timeout_s);
  const std::string said = last_line(result.error_tail);
  const bool exited = result.end == ChildResult::End::exited;
  if (exited && result.code == kToldCode) throw_error(said);
  ATTN_CHECK(exited && result.code == 0,
             "'{}' does not run the package attnbench ({}); pip install it there, build it (ninja "
             "-C build/native _core), or name another interpreter in {}",
             process.program, said.empty() ? "it ended without a word" : one_line(said, 200),
             kPythonVariable);
  const Parsed parsed = parse_json(last_line(result.output));
  ATTN_CHECK(parsed.fault.empty() && parsed.value.is_object(),
             "'{}' -m attnbench._cell printed no answer", process.program);
  return parsed.value;
}

}  // namespace attn
