// The plug-ins that a folder holds, whether or not its CMakeLists.txt lists them.
#pragma once

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace attn {

// "<family>/<name>" of each <name>.cc below `folder` that defines `<type> <name>()`.
inline std::set<std::string> plugins_on_disk(const std::filesystem::path& folder,
                                             const std::string& type) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cc") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::filesystem::path plugin =
        std::filesystem::relative(entry.path(), folder).replace_extension();
    if (text.str().find("\n" + type + " " + plugin.filename().string() + "() {") !=
        std::string::npos)
      found.insert(plugin.string());
  }
  return found;
}

// "<name>" of each "<family>/<name>".
inline std::set<std::string> names_of(const std::set<std::string>& plugins) {
  std::set<std::string> names;
  for (const std::string& plugin : plugins) names.insert(plugin.substr(plugin.rfind('/') + 1));
  return names;
}

}  // namespace attn
