// Reads with pread, which lets threads share a descriptor, and writes with stdio; see files.h.
// O(bytes).
#include "tasks/data/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/base/byte_order_mark.h"
#include "core/base/io_error.h"

namespace attn::data {

namespace fs = std::filesystem;

File::File(std::string path) : path_(std::move(path)) {
  // Without waiting, which a named pipe would make it do.
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  ATTN_IO_CHECK(descriptor_ >= 0, "cannot read '{}': {}", path_, std::strerror(errno));
  struct stat facts {};
  const bool known = fstat(descriptor_, &facts) == 0;
  if (known && S_ISREG(facts.st_mode)) {
    size_ = facts.st_size;
    return;
  }
  close(std::exchange(descriptor_, -1));
  throw_io_error(fmt::format("cannot read '{}': it is not a file", path_));
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::string File::read(int64_t offset, int64_t length) const {
  std::string bytes(static_cast<size_t>(length), '\0');
  for (int64_t done = 0; done < length;) {
    const ssize_t got =
        pread(descriptor_, bytes.data() + done, static_cast<size_t>(length - done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    ATTN_IO_CHECK(got >= 0, "cannot read '{}': {}", path_, std::strerror(errno));
    ATTN_CHECK(got > 0, "{}: ends at byte {}, wanted {} bytes from byte {} on", path_,
               offset + done, length, offset);
    done += got;
  }
  return bytes;
}

void for_each_line(
    const File& file,
    const std::function<void(int64_t number, int64_t offset, std::string_view text)>& line) {
  constexpr int64_t kBlock = int64_t{1} << 20, kLongestLine = 64 * kBlock;
  int64_t number = 0, start = 0;  // of the line that `held` begins
  std::string held;
  const auto emit = [&](std::string_view text) {
    int64_t offset = std::exchange(start, start + std::ssize(text) + 1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    if (++number == 1 && text.starts_with(kByteOrderMark)) {
      text = past_byte_order_mark(text);
      offset += std::ssize(kByteOrderMark);
    }
    line(number, offset, text);
  };
  for (int64_t at = 0; at < file.size(); at += kBlock) {
    const std::string block = file.read(at, std::min(kBlock, file.size() - at));
    size_t begin = 0;
    for (size_t end; (end = block.find('\n', begin)) != std::string::npos; begin = end + 1) {
      held.append(block, begin, end - begin);
      emit(held);
      held.clear();
    }
    held.append(block, begin);
    ATTN_CHECK(std::ssize(held) <= kLongestLine,
               "{} line {}: longer than {} bytes; not a text file?", file.path(), number + 1,
               kLongestLine);
  }
  if (!held.empty()) emit(held);
}

void Digest::add(uint64_t word) {
  state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ULL;
  state_ ^= state_ >> 29;
}

void Digest::add(std::string_view bytes) {
  add(static_cast<uint64_t>(bytes.size()));
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    add(word);
  }
}

uint64_t Digest::value() const {
  const uint64_t mixed = (state_ ^ (state_ >> 33)) * 0xff51afd7ed558ccdULL;
  return mixed ^ (mixed >> 33);
}

std::string Digest::hexadecimal() const { return fmt::format("{:016x}", value()); }

std::vector<std::string> names_in(const std::string& folder) {
  std::error_code fault;
  fs::directory_iterator it(folder, fault);
  std::vector<std::string> names;
  for (; !fault && it != fs::directory_iterator(); it.increment(fault))
    names.push_back(it->path().filename().string());
  ATTN_IO_CHECK(!fault, "cannot read the folder '{}': {}", folder, fault.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::string find_root(const std::string& folder, const std::string& inner, const std::string& entry,
                      std::string_view format) {
  std::error_code unreadable;
  ATTN_IO_CHECK(fs::is_directory(folder, unreadable), "data={}: no such folder", folder);
  for (const std::string& root : {folder, folder + "/" + inner})
    if (fs::exists(root + "/" + entry, unreadable)) return root;
  throw_error(fmt::format("data={}: no {} there; expected {} in it or in its subfolder {}", folder,
                          format, entry, inner));
}

int64_t whole_number(std::string_view text) {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : -1;
}

Output::Output(std::string path)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "wb"), std::fclose) {
  ATTN_IO_CHECK(file_, "cannot write '{}': {}", path_, std::strerror(errno));
}

void Output::append(std::string_view bytes) {
  ATTN_IO_CHECK(std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size(),
                "cannot write '{}': {}", path_, std::strerror(errno));
}

void Output::close() {
  ATTN_IO_CHECK(std::fclose(file_.release()) == 0, "cannot write '{}': {}", path_,
                std::strerror(errno));
}

void write_file(const std::string& path, std::string_view bytes) {
  Output file(path);
  file.append(bytes);
  file.close();
}

void make_folder(const std::string& path) {
  std::error_code fault;
  fs::create_directories(path, fault);
  ATTN_IO_CHECK(!fault, "cannot make the folder '{}': {}", path, fault.message());
}

}  // namespace attn::data
