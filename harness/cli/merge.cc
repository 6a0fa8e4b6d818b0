// attnbench merge: rows files of parts of a sweep, seeds or machines become one file.
#include <filesystem>
#include <system_error>

#include "core/base/check.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/compare/pooled.h"
#include "harness/store/merged.h"

namespace attn::cli {
namespace {

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void write_lines(const std::vector<Json>& lines, const std::string& output) {
  std::string text;
  for (const Json& line : lines) text += row_line(output, line);
  if (output == kStdoutPath)
    print(text);
  else
    replace_file(output, text);
}

int run_merge(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(), "no rows file named; usage: attnbench merge {}",
             merge_verb().usage);
  ATTN_CHECK(arguments.has("output"), "-o names the file to write; -: standard output");
  const std::string output = arguments.get("output");
  const std::string kept = arguments.one_of("keep", {"none", "first", "last", "all"});
  const Keep keep = kept == "first" ? Keep::first : kept == "last" ? Keep::last : Keep::none;
  const bool to_file = output != kStdoutPath;
  if (to_file) require_writable(output);
  ATTN_CHECK(!to_file || arguments.has("force") || !std::filesystem::exists(output),
             "'{}' exists; --force replaces it", output);
  if (kept == "all") {
    const std::vector<RowsFile> runs = read_runs(arguments.words());
    const PooledRows whole = pooled(runs);
    write_lines(whole.lines, output);
    warn(fmt::format("{}, the times of each from {}\n", counted(whole.cells, "row"),
                     counted(runs.size(), "run")));
    return kOk;
  }
  std::vector<NamedRows> files;
  for (const std::string& path : arguments.words()) files.push_back({path, read_rows(path)});
  const MergedRows merged = merge_rows(files, keep);
  write_lines(merged.lines, output);
  std::string left_out;
  if (merged.doubles > 0) left_out += "; " + counted(merged.doubles, "exact double") + " dropped";
  if (merged.replaced > 0)
    left_out += fmt::format("; {} measured again, the {} kept", merged.replaced, kept);
  warn(fmt::format("{} of {}{}\n", counted(merged.cells, "row"), counted(merged.runs, "run"),
                   left_out));
  return kOk;
}

}  // namespace

Verb merge_verb() {
  return {.name = "merge",
          .usage = "ROWS... -o FILE",
          .summary = "joins rows files of parts of a sweep, of seeds or of machines",
          .options = {{"output", 'o', "FILE", "the file to write; -: standard output"},
                      {"keep", 0, "WHICH",
                       "of a cell that two runs of one machine and build measured: first, last, or "
                       "none (default), which refuses; all: one row with the samples of all runs, "
                       "each run a visit"},
                      {"force", 'f', "", "replace an existing file"}},
          .max_words = 100000,
          .run = run_merge};
}

}  // namespace attn::cli
