// Files of the released data sets: positioned reads that threads share, lines of large files, a
// digest of contents, writing. Every error is one line that names the file, an
// IoError where the system refuses it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attn::data {

// A file open for reading. Error when it is missing, unreadable or a folder.
class File {
 public:
  explicit File(std::string path);
  File(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  // Exactly `length` bytes from `offset` on; Error when the file ends before. Thread-safe.
  std::string read(int64_t offset, int64_t length) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// Calls line(number, offset, text) for each line, counted from 1, without its end (\n or \r\n).
// Holds one line and a block of 1 MiB in memory. Error for a line of more than 64 MiB.
void for_each_line(
    const File& file,
    const std::function<void(int64_t number, int64_t offset, std::string_view text)>& line);

// 64 bits over a sequence of byte strings; their borders count.
class Digest {
 public:
  void add(std::string_view bytes);
  void add(uint64_t word);
  uint64_t value() const;
  std::string hexadecimal() const;  // 16 digits

 private:
  uint64_t state_ = 0xcbf29ce484222325ULL;
};

// The names in a folder, sorted. Error when there is no such folder.
std::vector<std::string> names_in(const std::string& folder);

// `folder` itself when it holds `entry`, else its subfolder `inner`; Error when neither does, which
// says what `format` needs.
std::string find_root(const std::string& folder, const std::string& inner, const std::string& entry,
                      std::string_view format);

// The whole number that all of `text` spells, or -1.
int64_t whole_number(std::string_view text);

// A file being written. Error when it cannot be made or the disk is full.
class Output {
 public:
  explicit Output(std::string path);
  void append(std::string_view bytes);
  void close();  // flushes; a destructor alone would hide a full disk

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

void write_file(const std::string& path, std::string_view bytes);
void make_folder(const std::string& path);  // with its parents; no error when it is there

}  // namespace attn::data
