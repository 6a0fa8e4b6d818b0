// Files of the released data sets: thread-safe reads at an offset, lines of large files, a digest
// of contents, and writing. An error message is one line that names the file; it is an IoError when
// the operating system reports the error.
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
  // Reads exactly `length` bytes from `offset`. Error when the file is shorter. Thread-safe.
  std::string read(int64_t offset, int64_t length) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

// Calls line(number, offset, text) for each line. Numbers start at 1; text is without its line end
// (\n or \r\n). Holds one line and a block of 1 MiB in memory. Error for a line of more than 64
// MiB.
void for_each_line(
    const File& file,
    const std::function<void(int64_t number, int64_t offset, std::string_view text)>& line);

// A 64-bit digest of a sequence of byte strings. It depends on where each string ends.
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

// Returns `folder` if it has the entry `entry`, else its subfolder `inner`. Error if neither has
// the entry; the message names `format`.
std::string find_root(const std::string& folder, const std::string& inner, const std::string& entry,
                      std::string_view format);

// The whole number that `text` consists of, or -1.
int64_t whole_number(std::string_view text);

// A file open for writing. Error when it cannot be created or the disk is full.
class Output {
 public:
  explicit Output(std::string path);
  void append(std::string_view bytes);
  void close();  // flushes and reports errors, which a destructor cannot do

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

void write_file(const std::string& path, std::string_view bytes);
void make_folder(const std::string& path);  // and its parents; no error when it exists

}  // namespace attn::data
