// Writing to people and pipes: stdout for data, stderr for everything meant for a person.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/io_error.h"
#include "harness/cli/terminal.h"

namespace attn::cli {

void print(std::string_view text) {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  ATTN_IO_CHECK(written, "cannot write to standard output: {}", std::strerror(errno));
}

void warn(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

bool is_terminal(Stream stream) {
  return isatty(stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO) == 1;
}

size_t terminal_width(Stream stream, size_t otherwise) {
  winsize size{};
  const int descriptor = stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO;
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : otherwise;
}

std::string cut_to(const std::string& line, size_t width) {
  const auto starts = [](char c) { return (c & 0xC0) != 0x80; };  // a character of UTF-8
  if (static_cast<size_t>(std::count_if(line.begin(), line.end(), starts)) <= width) return line;
  size_t end = 0, characters = 0;
  while (characters < width || !starts(line[end])) characters += starts(line[end++]);
  while (!starts(line[--end])) {
  }
  return line.substr(0, end) + "…";
}

bool wants_color(const std::string& choice, Stream stream) {
  if (choice != "auto") return choice == "always";
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color && *no_color) return false;
  return is_terminal(stream) && !(term && std::strcmp(term, "dumb") == 0);
}

void require_writable(const std::string& path, bool quiet) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  std::error_code error;
  if (fs::create_directories(folder, error) && !quiet)
    warn(fmt::format("made the folder '{}'\n", folder.string()));
  ATTN_IO_CHECK(fs::is_directory(folder), "cannot make the folder '{}' for '{}': {}",
                folder.string(), path,
                error ? error.message() : "a file of that name is in the way");
  ATTN_IO_CHECK(!fs::is_directory(path), "'{}' is a folder; expected a file", path);
  ATTN_IO_CHECK(access(folder.c_str(), W_OK) == 0, "cannot write into the folder '{}': {}",
                folder.string(), std::strerror(errno));
  ATTN_IO_CHECK(access(path.c_str(), F_OK) != 0 || access(path.c_str(), W_OK) == 0,
                "cannot write '{}': {}", path, std::strerror(errno));
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-+=:,./%@", c);
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace attn::cli
