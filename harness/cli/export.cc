// attnbench export: rows in the forms that other programs read.
#include "harness/export/export.h"

#include "harness/cli/rendered.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/cli/wrapper.h"

namespace attn::cli {
namespace {

int run_export(const Arguments& arguments) {
  ATTN_CHECK(!arguments.words().empty(), "export needs a rows file; usage: attnbench export {}",
             export_verb().usage);
  const std::string format = arguments.one_of("format", {"csv", "json", "gbench"});
  const std::string output = arguments.get("output");
  if (output.ends_with(".parquet")) hand_to_python(export_verb(), arguments);
  const bool by_sample = arguments.has("samples");
  ATTN_CHECK(!by_sample || format != "gbench",
             "--samples goes with csv and json; gbench always has an entry for each sample");
  const std::vector<RowsFile> runs = read_runs(arguments.words());
  size_t count = 0;
  std::string text;
  if (format == "gbench") {
    const Json whole = google_benchmark(runs);
    count = whole["benchmarks"].size();
    text = whole.dump(2) + "\n";
  } else {
    const std::vector<Json> lines = by_sample ? sample_lines(runs) : row_lines(runs);
    count = lines.size();
    text = rendered(format, lines);
  }
  if (count == 0) {
    warn(fmt::format("attnbench: nothing matched: the files hold no {}\n",
                     by_sample || format == "gbench" ? "time" : "cell"));
    return kNothingMatched;
  }
  deliver(text, output, arguments.words());
  return kOk;
}

}  // namespace

Verb export_verb() {
  return {.name = "export",
          .usage = "ROWS... [OPTION...]",
          .summary = "rows for other programs: csv, json, Google Benchmark's JSON, Parquet",
          .options = {{"format", 0, "KIND",
                       "csv (default): a line a row, with its machine and commit; json; gbench: "
                       "the times as Google Benchmark's JSON"},
                      {"samples", 0, "", "csv and json: a line for each sample of a time"},
                      {"output", 'o', "FILE",
                       "default: standard output; FILE.parquet is written by Python with pyarrow"}},
          .max_words = 1000,
          .run = run_export};
}

}  // namespace attn::cli
