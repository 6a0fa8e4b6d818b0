// The folder that a text stands for, made below TMPDIR (scripts/fuzz: in memory) and gone at the
// end. A line "== PATH" begins a file and all up to the next such line is its content; "== PATH *N"
// gives it N bytes, by repeating or cutting; "== PATH/" makes a folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attn::fuzz {

class FolderOf {
 public:
  explicit FolderOf(std::string_view text);
  FolderOf(const FolderOf&) = delete;
  FolderOf& operator=(const FolderOf&) = delete;
  ~FolderOf();
  const std::string& path() const;

 private:
  void make_file(std::string_view header, std::string_view content);

  std::vector<std::string> folders_, files_;  // in the order of making
  size_t bytes_ = 0;
};

}  // namespace attn::fuzz
