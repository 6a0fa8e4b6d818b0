// See folder_of.h. A few system calls a file: a target runs thousands of times a second.
#include "tests/fuzz/folder_of.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "core/base/temporary_folder.h"
#include "tests/fuzz/oracle.h"

namespace attn::fuzz {
namespace {

constexpr size_t kMostFiles = 64, kMostBytes = 200'000;  // of a folder
constexpr std::string_view kMark = "== ";

const std::string& root() {
  static const TemporaryFolder folder;
  return folder.path();
}

// The parts of a path that stays below the root; a text that is no such path gives none.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  if (path.find('\0') != std::string_view::npos) return parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    if (part == ".." || part.size() > 200 || parts.size() > 5) return {};
    if (!part.empty() && part != ".") parts.emplace_back(part);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

}  // namespace

const std::string& FolderOf::path() const { return root(); }

FolderOf::FolderOf(std::string_view text) {
  for (size_t files = 0; files < kMostFiles && text.starts_with(kMark); files++) {
    text.remove_prefix(kMark.size());
    const size_t line = std::min(text.find('\n'), text.size());
    const std::string_view header = text.substr(0, line);
    text.remove_prefix(std::min(line + 1, text.size()));
    size_t end = text.starts_with(kMark) ? 0 : text.find("\n== ");
    end = end == std::string_view::npos ? text.size() : end + (end > 0);
    make_file(header, text.substr(0, end));
    text.remove_prefix(end);
  }
}

void FolderOf::make_file(std::string_view header, std::string_view content) {
  size_t size = content.size();
  if (const size_t star = header.rfind(" *"); star != std::string_view::npos) {
    const std::string_view digits = header.substr(star + 2);
    std::from_chars(digits.data(), digits.data() + digits.size(), size);
    header = header.substr(0, star);
  }
  std::vector<std::string> parts = parts_of(header);
  if (content.empty()) size = 0;
  if (parts.empty() || size > kMostBytes - bytes_) return;  // their sum may pass the largest size
  bytes_ += size;
  std::string place = root();
  const std::string name = header.ends_with('/') ? "" : parts.back();
  if (!name.empty()) parts.pop_back();
  for (const std::string& part : parts) {
    place += "/" + part;
    if (mkdir(place.c_str(), 0700) == 0) folders_.push_back(place);
  }
  if (name.empty()) return;
  place += "/" + name;
  const int file = open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;  // there is one of this name
  files_.push_back(place);
  std::string bytes;
  bytes.reserve(size);
  while (bytes.size() < size) bytes.append(content.substr(0, size - bytes.size()));
  const ssize_t put = write(file, bytes.data(), bytes.size());
  close(file);
  require(put == std::ssize(bytes), "cannot write " + place);
}

FolderOf::~FolderOf() {
  for (const std::string& file : files_) unlink(file.c_str());
  std::for_each(folders_.rbegin(), folders_.rend(),
                [](const std::string& folder) { rmdir(folder.c_str()); });
}

}  // namespace attn::fuzz
