// A folder of its own for a test, with the files that the test writes into it; gone at the end.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/base/check.h"

namespace attn {

class Folder {
 public:
  Folder() {
    std::string path = (std::filesystem::temp_directory_path() / "attn_test_XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) throw_error("cannot make " + path);
    path_ = path;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    const std::filesystem::path file = path_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(path_ + "/" + name); }

 private:
  std::string path_;
};

// What an attn::Error says; "" when `action` throws none.
template <class Action>
std::string fault_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace attn
