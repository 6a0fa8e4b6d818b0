// A folder of its own for a test, with the files that the test writes into it; gone at the end.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/base/temporary_folder.h"

namespace attn {

class Folder {
 public:
  const std::string& path() const { return folder_.path(); }
  void write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path() + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path() + "/" + name); }

 private:
  TemporaryFolder folder_;
};

}  // namespace attn
