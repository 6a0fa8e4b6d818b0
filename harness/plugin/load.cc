// See load.h. The plug-in's undefined symbols are this program's, which exports all of its own:
// there is one pool of memory, one counter of FLOPs, one catalogue.
#include "harness/plugin/load.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/base/io_error.h"
#include "harness/plugin/add.h"
#include "harness/plugin/entry.h"
#include "harness/plugin/mark.h"
#include "harness/store/rows.h"
#include "tasks/catalog.h"

namespace attn {
namespace {

// Absolute paths, in the order of loading.
std::vector<std::string>& loaded_files() {
  static std::vector<std::string> files;
  return files;
}

std::string contents_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  ATTN_IO_CHECK(stream.good() && !std::filesystem::is_directory(file),
                "cannot read the plug-in '{}'", file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string last_fault() {
  const char* const text = dlerror();
  return text ? text : "unknown";
}

const void* symbol(void* library, const char* name) {
  const void* const found = dlsym(library, name);
  ATTN_CHECK(found, "it exports no '{}': {}", name, last_fault());
  return found;
}

void add_tasks(const PluginEntry& entry, const std::string& file_hash) {
  for (auto make = entry.tasks; *make; ++make) add_task((*make)(), file_hash);
}

void load(const std::string& file) {
  const std::string contents = contents_of(file);
  ATTN_CHECK(contents.starts_with("\177ELF"), "it is no shared library");
  const std::string why = why_unfit(marks_in(contents), own_mark(), attn_plugin::has_double());
  ATTN_CHECK(why.empty(), "{}", why);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays until the end
  ATTN_CHECK(library, "it cannot be loaded: {}", last_fault());
  const void* const entry = symbol(library, "attnbench_plugin");
  const std::string hash = hash_of_bytes(contents);
  const auto names = attn_plugin::add_float(entry, hash);
  if (attn_plugin::has_double()) {
    const auto again = attn_plugin::add_double(symbol(library, "attnbench_plugin_double"), hash);
    ATTN_CHECK(names == again, "its variants in float and in double differ");
  }
  add_tasks(*static_cast<const PluginEntry*>(entry), hash);
}

void remember(const std::string& path) {
  loaded_files().push_back(path);
  std::string list;
  for (const std::string& file : loaded_files()) list += (list.empty() ? "" : ":") + file;
  setenv(kPluginsVariable, list.c_str(), 1);
}

}  // namespace

void load_plugins(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    std::error_code unknown;
    const std::string path = std::filesystem::canonical(file, unknown).string();
    ATTN_IO_CHECK(!unknown, "cannot read the plug-in '{}': {}", file, unknown.message());
    const std::vector<std::string>& before = loaded_files();
    if (std::find(before.begin(), before.end(), path) != before.end()) continue;
    ATTN_CHECK(path.find(':') == std::string::npos,
               "plug-in '{}': a ':' in its path would part two paths in {}", file,
               kPluginsVariable);
    try {
      load(path);
    } catch (const IoError&) {
      throw;
    } catch (const Error& error) {
      throw_error(fmt::format("plug-in '{}': {}", file, error.what()));
    }
    remember(path);
  }
}

void load_plugins_of_environment() {
  const char* const text = std::getenv(kPluginsVariable);
  std::vector<std::string> files;
  std::string file;
  for (const char c : std::string(text ? text : "") + ":") {
    if (c != ':') file += c;
    if (c == ':' && !file.empty()) files.push_back(std::exchange(file, ""));
  }
  load_plugins(files);
}

}  // namespace attn
