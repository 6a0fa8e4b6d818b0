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

// A flipped bit may turn one figure into another, which no schema tells. Lines of earlier versions
// have no checksum, and a line that was written anew by another program keeps its own.
std::string checksum_fault(Json& row) {
  if (!row.is_object() || !row.contains(kChecksum)) return {};
  const Json said = std::move(row[kChecksum]);
  row.erase(kChecksum);
  if (said == hash_of(row)) return {};
  return "the line is damaged: its checksum is another";
}

Json parse_line(const std::string& path, size_t number, std::string_view line, std::string& run) {
  Parsed parsed = parse_json(line);
  ATTN_CHECK(parsed.fault.empty(), "{}:{}: {}", path, number, parsed.fault);
  Json row = std::move(parsed.value);
  std::string fault = schema_fault(row);
  if (fault.empty()) fault = checksum_fault(row);
  if (fault.empty()) fault = order_fault(row, run);
  ATTN_CHECK(fault.empty(), "{}:{}: {}", path, number, fault);
  if (row["kind"] == "run") run = row["run"];
  return row;
}

struct Contents {
  std::vector<Json> rows;
  std::string run;         // id of the run line
  size_t whole_bytes = 0;  // up to and with the last newline
};

// The part of `text` after the last newline is left out: a line counts once its newline is written.
Contents parse_lines(const std::string& path, std::string_view text) {
  Contents contents;
  while (true) {
    const size_t end = text.find('\n', contents.whole_bytes);
    if (end == std::string_view::npos) return contents;
    const std::string_view line = text.substr(contents.whole_bytes, end - contents.whole_bytes);
    contents.rows.push_back(parse_line(path, contents.rows.size() + 1, line, contents.run));
    contents.whole_bytes = end + 1;
  }
}

// For whom a damaged line stands in the way.
Contents parse_to_go_on(const std::string& path, std::string_view text) {
  try {
    return parse_lines(path, text);
  } catch (const Error& error) {
    throw_error(fmt::format(
        "{}; take that line out, and its cell is measured again (of the first line: name another "
        "output file, or --force to start over)",
        error.what()));
  }
}

// The name of a new file must reach the disk as well as its bytes.
void sync_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const Descriptor file(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() >= 0) ::fsync(file.get());
}

// Existing rows, with a torn last line cut off; `truncate` empties the file. Nothing is cut from a
// file that is not ours.
Contents take_over(int file, const std::string& path, bool truncate) {
  const std::string text = read_all(file, path);
  const std::string_view start = std::string_view(text).substr(0, kFirstBytes.size());
  ATTN_CHECK(kFirstBytes.substr(0, start.size()) == start,
             "{} is not a rows file of {}; left as it is", path, kSchema);
  Contents contents;
  if (!truncate) contents = parse_to_go_on(path, text);
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
  if (allow_torn) return std::move(contents.rows);
  ATTN_CHECK(contents.whole_bytes == text.size(), "{}:{}: torn line", path,
             contents.rows.size() + 1);
  ATTN_CHECK(!contents.rows.empty(), "{}: holds no rows", path);
  return std::move(contents.rows);
}

}  // namespace attn
