// attnbench report: hands over to the wrapper script, which starts the Python that writes the page.
#include "harness/cli/verbs.h"
#include "harness/cli/wrapper.h"

namespace attn::cli {
namespace {

int run_report(const Arguments& arguments) { hand_to_python(report_verb(), arguments); }

}  // namespace

Verb report_verb() {
  return {.name = "report",
          .usage = "[ROWS...] [OPTION...]",
          .summary = "rows as one HTML file to explore; default: the newest rows in results/",
          .options = {{"output", 'o', "FILE.html", "default: beside the rows"},
                      {"history", 0, "FOLDER",
                       "rows files of one sweep, one a commit: a line for each cell over them"}},
          .max_words = 1000,
          .run = run_report};
}

}  // namespace attn::cli
