// A new empty folder below TMPDIR, removed with all that is in it at the end of the object's life.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/check.h"

namespace attn {

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_((std::filesystem::temp_directory_path() / "attnbench_XXXXXX").string()) {
    ATTN_CHECK(mkdtemp(path_.data()),
               "{} cannot be made; set TMPDIR to a folder that can be written", path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace attn
