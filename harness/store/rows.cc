// Rows on disk: whole lines appended under a lock and synced, so that a kill at any moment costs
// the last line at most. Appending costs one validation, one write and one fsync.
#include "harness/store/rows.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/io_error.h"
#include "harness/store/parse.h"

namespace attn {
namespace {

constexpr std::string_view kFirstBytes =
    "{\"schema\":\"attnbench/1\"";             // of every line that append() writes
constexpr const char* kChecksum = "checksum";  // a field of every line, of what else the line says

[[noreturn]] void throw_errno(const std::string& path, std::string_view what) {
  throw_io_error(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_;
};

std::string read_all(int file, const std::string& path) {
  std::string text;
  char chunk[1 << 16];
  while (true) {
    const ssize_t got = ::read(file, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(path, "cannot read");
    if (got == 0) return text;
    text.append(chunk, static_cast<size_t>(got));
  }
}

// `run` is the id of the file's run line, empty before the first line: one file, one run. Further
// run lines of the same id say what the file was widened by.
std::string order_fault(const Json& row, const std::string& run) {
  if (run.empty()) return row["kind"] == "run" ? "" : "the first line must describe the run";
  if (row["run"] == run) return {};
  return fmt::format("run: {} is not the run of the first line, {}", row["run"].get<std::string>(),
                     run);
}

// A flipped bit can turn a figure into another that the schema accepts too. Lines of earlier
// versions have no checksum and are accepted.
std::string checksum_fault(Json& row) {
  if (!row.is_object() || !row.contains(kChecksum)) return {};
  const Json said = std::move(row[kChecksum]);
  row.erase(kChecksum);
  if (said == hash_of(row)) return {};
  return "the line was changed after it was written: its checksum does not match";
}

enum class LineFault { none, first_line, run_line, cell, other_run };

// What to do about a fault, for a sweep that continues the file.
std::string_view advice_on(LineFault fault) {
  switch (fault) {
    case LineFault::none:
      break;
    case LineFault::first_line:
      return "; name another output file, or --force to start over";
    case LineFault::run_line:
      return "; take that line out: it holds no cell";
    case LineFault::cell:
      return "; take that line out, and its cell is measured again";
    case LineFault::other_run:
      return "; a file holds one run: keep the files of two runs apart, and give both to plot";
  }
  return "";
}

struct Contents {
  std::vector<Json> rows;
  std::string run;         // id of the run line
  size_t whole_bytes = 0;  // up to and with the last newline, or the line before a fault
  LineFault fault = LineFault::none;
  std::string message;  // of the fault, with its place
};

// Adds the line to `contents`, as a row or as their fault.
void parse_line(const std::string& path, std::string_view line, Contents& contents) {
  Parsed parsed = parse_json(line);
  Json row = std::move(parsed.value);
  std::string fault = std::move(parsed.fault);
  if (fault.empty()) fault = schema_fault(row);
  if (fault.empty()) fault = checksum_fault(row);
  bool is_other_run = false;
  if (fault.empty()) {
    fault = order_fault(row, contents.run);
    is_other_run = !fault.empty();
  }
  if (!fault.empty()) {
    const bool is_run = line.find("\"kind\":\"run\"") != std::string_view::npos;
    contents.message = fmt::format("{}:{}: {}", path, contents.rows.size() + 1, fault);
    contents.fault = contents.rows.empty() ? LineFault::first_line
                     : is_other_run        ? LineFault::other_run
                     : is_run              ? LineFault::run_line
                                           : LineFault::cell;
    return;
  }
  if (row["kind"] == "run") contents.run = row["run"];
  contents.rows.push_back(std::move(row));
}

// The part of `text` after the last newline is left out: a line counts once its newline is written.
Contents parse_lines(const std::string& path, std::string_view text) {
  Contents contents;
  while (true) {
    const size_t end = text.find('\n', contents.whole_bytes);
    if (end == std::string_view::npos) return contents;
    parse_line(path, text.substr(contents.whole_bytes, end - contents.whole_bytes), contents);
    if (contents.fault != LineFault::none) return contents;
    contents.whole_bytes = end + 1;
  }
}

// For a sweep that continues the file: the error also says what to do.
Contents parse_to_go_on(const std::string& path, std::string_view text) {
  Contents contents = parse_lines(path, text);
  ATTN_CHECK(contents.fault == LineFault::none, "{}{}", contents.message,
             advice_on(contents.fault));
  return contents;
}

// The name of a new file must reach the disk as well as its bytes.
void sync_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const Descriptor file(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) ::fsync(file.get());
}

// Existing rows, with a torn last line cut off; `truncate` empties the file. Nothing is cut from a
// file that is not ours. A file of NULs alone is left by a power cut before the first line reached
// the disk, and counts as empty.
Contents take_over(int file, const std::string& path, bool truncate) {
  const std::string text = read_all(file, path);
  const bool is_empty = text.find_first_not_of('\0') == std::string::npos;
  const std::string_view start = std::string_view(text).substr(0, kFirstBytes.size());
  ATTN_CHECK(is_empty || kFirstBytes.substr(0, start.size()) == start,
             "{} is not a rows file of {}; left as it is", path, kSchema);
  Contents contents;
  if (!truncate && !is_empty) contents = parse_to_go_on(path, text);
  if (contents.whole_bytes < text.size() &&
      ::ftruncate(file, static_cast<off_t>(contents.whole_bytes)) != 0) {
    throw_errno(path, "cannot cut");
  }
  return contents;
}

// All of `line` or, on a regular file, nothing of it.
void write_whole(int file, const std::string& path, std::string_view line) {
  struct stat before {};
  if (::fstat(file, &before) != 0) throw_errno(path, "cannot write");
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t put = ::write(file, line.data() + done, line.size() - done);
    if (put > 0) {
      done += static_cast<size_t>(put);
    } else if (put == 0 || errno != EINTR) {
      const int fault = put == 0 ? ENOSPC : errno;
      if (S_ISREG(before.st_mode) && ::ftruncate(file, before.st_size) != 0) {
        throw_errno(path, "cannot write, and cannot cut the torn line");
      }
      errno = fault;
      throw_errno(path, "cannot write");
    }
  }
  // Pipes and terminals cannot be synced and say so with EINVAL.
  if (::fsync(file) != 0 && errno != EINVAL && errno != EROFS) throw_errno(path, "cannot sync");
}

// A child of a run that was just killed may hold the lock for a moment, so a second is waited.
void lock_rows(int file, const std::string& path) {
  for (int attempt = 0; ::flock(file, LOCK_EX | LOCK_NB) != 0; attempt++) {
    if (errno != EWOULDBLOCK) throw_errno(path, "cannot lock");
    ATTN_CHECK(attempt < 50, "{}: another run is writing to it", path);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

bool is_cell(const Json& line) { return line["kind"] == "cell"; }

RowWriter::RowWriter(std::string path, bool truncate) : path_(std::move(path)) {
  if (path_ == kStdoutPath) {
    path_ = "standard output";
    file_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (file_ < 0) throw_errno(path_, "cannot write");
    return;
  }
  Descriptor file(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) throw_errno(path_, "cannot open for writing");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno(path_, "cannot open for writing");
  if (S_ISREG(status.st_mode)) {
    lock_rows(file.get(), path_);
    Contents contents = take_over(file.get(), path_, truncate);
    existing_ = std::move(contents.rows);
    run_ = std::move(contents.run);
    sync_folder(path_);
  }
  file_ = file.release();
}

RowWriter::~RowWriter() {
  if (file_ >= 0) ::close(file_);
}

void RowWriter::append(const Json& row) {
  std::string fault = schema_fault(row);
  if (fault.empty()) fault = order_fault(row, run_);
  ATTN_CHECK(fault.empty(), "{}: row refused: {}", path_, fault);
  std::string line;
  try {
    Json stamped = row;
    stamped[kChecksum] = hash_of(row);
    line = stamped.dump() + "\n";
  } catch (const Json::exception&) {
    throw_error(fmt::format("{}: row refused: text that is not UTF-8", path_));
  }
  ATTN_CHECK(line.starts_with(kFirstBytes), "{}: row refused: schema must be its first field",
             path_);
  write_whole(file_, path_, line);
  if (row["kind"] == "run") run_ = row["run"];
}

std::vector<Json> read_rows(const std::string& path, bool allow_torn) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw_errno(path, "cannot open");
  return parse_rows(path, read_all(file.get(), path), allow_torn);
}

std::vector<Json> parse_rows(const std::string& path, std::string_view text, bool allow_torn) {
  Contents contents = parse_lines(path, text);
  ATTN_CHECK(contents.fault == LineFault::none, "{}", contents.message);
  if (allow_torn) return std::move(contents.rows);
  ATTN_CHECK(contents.whole_bytes == text.size(), "{}:{}: torn line", path,
             contents.rows.size() + 1);
  ATTN_CHECK(!contents.rows.empty(), "{}: holds no rows", path);
  return std::move(contents.rows);
}

}  // namespace attn
