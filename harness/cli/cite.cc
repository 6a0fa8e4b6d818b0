// attnbench cite: BibTeX for the program, or for rows and the program that measured them.
#include <algorithm>

#include "harness/cli/citation.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

int run_cite(const Arguments& arguments) {
  if (arguments.words().empty()) return print(bibtex_of_program()), kOk;
  std::vector<CitedRows> files;
  for (const std::string& path : arguments.words()) {
    files.push_back({.runs = read_runs(path), .checksum = checksum_of(read_rows(path))});
    const std::vector<RowsFile>& runs = files.back().runs;
    if (std::any_of(runs.begin(), runs.end(), [](const auto& run) { return !run.rows.empty(); }))
      continue;
    warn(fmt::format("attnbench: nothing matched: '{}' holds no cell\n", path));
    return kNothingMatched;
  }
  print(bibtex_of_rows(files));
  return kOk;
}

}  // namespace

Verb cite_verb() {
  return {.name = "cite",
          .usage = "[ROWS...]",
          .summary = "BibTeX with version, commit, protocol and the checksum of rows",
          .options = {},
          .max_words = 1000,
          .run = run_cite};
}

}  // namespace attn::cli
