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
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/byte_order_mark.h"
#include "core/base/io_error.h"
#include "harness/store/parse.h"

namespace attn {
namespace {

constexpr std::string_view kFirstBytes =
    "{\"schema\":\"attnbench/1\"";             // of every line that append() writes
constexpr const char* kMerged = "merged";      // true in run lines of a file of several runs
constexpr const char* kChecksum = "checksum";  // a field of every line, of what else the line says

[[noreturn]] void throw_errno(const std::string& path, std::string_view what) {
  throw_io_error(fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  Descriptor(Descriptor&& other) noexcept : file_(other.release()) {}
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

// The runs of the lines so far: the first, and those that were merged with it.
struct Runs {
  std::string first;  // empty before the first line
  std::set<std::string> merged;
};

// One file, one run. Further run lines of the same id say what the file was widened by. Run lines
// of other ids say that they were merged: files that were joined by hand are refused.
std::string order_fault(const Json& row, const Runs& runs) {
  if (runs.first.empty()) return row["kind"] == "run" ? "" : "the first line must describe the run";
  const std::string& run = row["run"].get_ref<const std::string&>();
  const bool begins = row["kind"] == "run" && row.value(kMerged, false) && !runs.merged.empty();
  if (begins || run == runs.first || runs.merged.count(run)) return {};
  return fmt::format("run: {} is not the run of the first line, {}", run, runs.first);
}

void add_run(const Json& row, Runs& runs) {
  if (row["kind"] != "run") return;
  if (runs.first.empty()) runs.first = row["run"];
  if (row.value(kMerged, false)) runs.merged.insert(row["run"].get<std::string>());
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
      return "; a file holds one run: keep the files of two runs apart, or join them by attnbench "
             "merge";
  }
  return "";
}

struct Contents {
  std::vector<Json> rows;
  Runs runs;
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
    fault = order_fault(row, contents.runs);
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
  add_run(row, contents.runs);
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
  ATTN_CHECK(contents.runs.merged.empty(),
             "'{}' was merged from {} run{}; go on with the files it was made of, and merge again",
             path, contents.runs.merged.size(), contents.runs.merged.size() == 1 ? "" : "s");
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
  const std::string_view start = past_byte_order_mark(text).substr(0, kFirstBytes.size());
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

bool is_regular(int file, const std::string& path) {
  struct stat status {};
  if (::fstat(file, &status) != 0) throw_errno(path, "cannot open for writing");
  return S_ISREG(status.st_mode);
}

// Another run may have put a new file in the place of the one that was opened (RowWriter::drop,
// replace_file) before the lock was free: then the lock is of a file that nobody sees.
bool is_in_place(int file, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

Descriptor open_locked(const std::string& path) {
  while (true) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (file.get() < 0) throw_errno(path, "cannot open for writing");
    if (!is_regular(file.get(), path)) return file;
    lock_rows(file.get(), path);
    if (is_in_place(file.get(), path)) return file;
  }
}

// A new file with this text in the place of `path`, open and locked.
Descriptor put_in_place(const std::string& path, std::string_view text) {
  std::error_code fault;
  const std::string target = std::filesystem::weakly_canonical(path, fault);  // behind a link
  const std::string draft = (fault ? path : target) + ".draft";
  Descriptor file(::open(draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) throw_errno(draft, "cannot open for writing");
  lock_rows(file.get(), draft);
  try {
    write_whole(file.get(), draft, text);
    if (::rename(draft.c_str(), fault ? path.c_str() : target.c_str()) != 0)
      throw_errno(path, "cannot replace");
  } catch (...) {
    ::unlink(draft.c_str());
    throw;
  }
  sync_folder(path);
  return file;
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
  Descriptor file = open_locked(path_);
  if (is_regular(file.get(), path_)) {
    Contents contents = take_over(file.get(), path_, truncate);
    existing_ = std::move(contents.rows);
    run_ = std::move(contents.runs.first);
    sync_folder(path_);
  }
  file_ = file.release();
}

RowWriter::~RowWriter() {
  if (file_ >= 0) ::close(file_);
}

std::string row_line(const std::string& path, const Json& row) {
  const std::string fault = schema_fault(row);
  ATTN_CHECK(fault.empty(), "{}: row refused: {}", path, fault);
  std::string line;
  try {
    Json stamped = row;
    stamped[kChecksum] = hash_of(row);
    line = stamped.dump() + "\n";
  } catch (const Json::exception&) {
    throw_error(fmt::format("{}: row refused: text that is not UTF-8", path));
  }
  ATTN_CHECK(line.starts_with(kFirstBytes), "{}: row refused: schema must be its first field",
             path);
  return line;
}

void replace_file(const std::string& path, std::string_view text) { put_in_place(path, text); }

void RowWriter::append(const Json& row) {
  const std::string line = row_line(path_, row);
  const std::string fault = order_fault(row, {.first = run_, .merged = {}});
  ATTN_CHECK(fault.empty(), "{}: row refused: {}", path_, fault);
  write_whole(file_, path_, line);
  if (row["kind"] == "run") run_ = row["run"];
}

void RowWriter::drop(const std::set<std::string>& cells) {
  std::string text;
  std::vector<Json> kept;
  for (Json& row : existing_) {
    if (is_cell(row) && cells.count(row["cell"].get_ref<const std::string&>())) continue;
    text += row_line(path_, row);
    kept.push_back(std::move(row));
  }
  existing_ = std::move(kept);
  Descriptor file = put_in_place(path_, text);
  ::close(std::exchange(file_, file.release()));
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
