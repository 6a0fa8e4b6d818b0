// Rows on disk, schema attnbench/1: strict JSON Lines, appended and synced one by one. The first
// line describes the run, every other line is a cell of it.
#pragma once

#include <nlohmann/json.hpp>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

using Json = nlohmann::ordered_json;

inline constexpr const char* kSchema = "attnbench/1";

// In place of a path: rows go to standard output, and nothing is read back. ("./-" is a file.)
inline constexpr const char* kStdoutPath = "-";

// Appends whole lines; each is on disk (fsync) when append returns. Opening an existing file drops
// a torn last line (a killed run), checks the rest and refuses a file that is not ours, with
// `truncate` too. The file is locked: a second writer is an Error. The first line is of kind run,
// the others are its cells, or further run lines of the same id, of sweeps that widened the file.
// A file of merged runs (merged.h) is an Error: it holds several runs.
// IoError on a full or unwritable disk; what fits half is taken back. "schema" is each row's first
// field, and "checksum" the last: a row that is read has none, but was compared with it.
class RowWriter {
 public:
  explicit RowWriter(std::string path, bool truncate = false);
  ~RowWriter();
  RowWriter(const RowWriter&) = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  void append(
      const Json& row);  // Error when the row does not fit the schema or holds NaN or infinity
  // Takes the cells of these ids out of the file, which is replaced at once.
  void drop(const std::set<std::string>& cells);
  const std::vector<Json>& existing() const { return existing_; }  // the rows found when opened

 private:
  std::string path_;
  int file_ = -1;
  std::string run_;  // id of the run line, once there
  std::vector<Json> existing_;
};

// The line of a row as it stands in a file, with its checksum and the newline. Error where the row
// does not fit the schema, or `path`, which the Error names, cannot hold its text.
std::string row_line(const std::string& path, const Json& row);
// Writes a whole file at once: when this returns or throws, the file holds all of `text` or what it
// held before.
void replace_file(const std::string& path, std::string_view text);

// All rows of a file; Error names file:line and the fault, IoError a file that cannot be read. A
// torn last line is an error unless `allow_torn`.
std::vector<Json> read_rows(const std::string& path, bool allow_torn = false);
// All rows of the text of a file; `path` names it in an Error.
std::vector<Json> parse_rows(const std::string& path, std::string_view text,
                             bool allow_torn = false);

// Empty when `row` keeps the schema; otherwise what is wrong: "metrics.time_s.median: expected a
// number".
std::string schema_fault(const Json& row);
// Where `value` holds a number that is not finite: "metrics.test"; "" where it holds none.
std::string non_finite_place(const Json& value);
bool is_cell(const Json& line);  // not of kind run
std::string hash_of(
    const Json& value);  // 16 hex digits over the canonical text (keys sorted, shortest numbers)
std::string hash_of_bytes(std::string_view bytes);  // 16 hex digits, such as of a file's contents
std::string text_of(const Json& value);             // a string as it is, all else as JSON
std::string one_line(std::string_view text,
                     size_t most = 500);  // the end of `text`, printable UTF-8 without newlines
std::string utc_now();                    // 2026-11-20T12:00:00Z
Json finite_or_null(double value);        // strict JSON has neither NaN nor infinity

}  // namespace attn
