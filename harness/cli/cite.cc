// attnbench cite: BibTeX for the program, or for rows and the program that measured them.
#include "harness/cli/citation.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"

namespace attn::cli {
namespace {

int run_cite(const Arguments& arguments) {
  if (arguments.words().empty()) return print(bibtex_of_program()), kOk;
  std::string text;
  for (const std::string& path : arguments.words())
    text +=
        (text.empty() ? "" : "\n") + bibtex_of_rows(read_runs(path), checksum_of(read_rows(path)));
  print(text);
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
