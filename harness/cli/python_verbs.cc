// The verbs that Python does: pictures, pages, statistics over several machines, bundles. The
// program declares their words and options, so that help, manual and completion know them.
#include "harness/cli/verbs.h"
#include "harness/cli/wrapper.h"

namespace attn::cli {
namespace {

template <Verb (*verb)()>
int handed_over(const Arguments& arguments) {
  hand_to_python(verb(), arguments);
}

}  // namespace

Verb plot_verb() {
  return {.name = "plot",
          .usage = "[ROWS...] [OPTION...]",
          .summary = "pictures and their data from rows; default: the newest rows in results/",
          .options = {{"output", 'o', "FOLDER", "default: beside the rows"},
                      {"kind", 0, "NAME", "one kind of picture alone, for example crossing"},
                      {"style", 0, "NAME", "paper, slide or web: panels alone, without a caption"},
                      {"width", 0, "SIZE", "of a picture of --style: 3.3in, 84mm or 240pt"},
                      {"font", 0, "NAME", "of a picture of --style"},
                      {"x", 0, "NAME", "an axis or a metric: length, state_bytes; variant: a list"},
                      {"y", 0, "NAME", "a metric: time_s, peak_bytes, test, relative_error"},
                      {"by", 0, "NAME", "a line for each value of it; default: variant"},
                      {"facet", 0, "NAME", "a picture for each value of it: mode, task, causal"}},
          .max_words = 1000,
          .run = handed_over<plot_verb>};
}

Verb report_verb() {
  return {.name = "report",
          .usage = "[ROWS...] [OPTION...]",
          .summary = "rows as one HTML file to explore; default: the newest rows in results/",
          .options = {{"output", 'o', "FILE.html", "default: beside the rows"},
                      {"history", 0, "FOLDER",
                       "rows files of one sweep, one a commit: a line for each cell over them"}},
          .max_words = 1000,
          .run = handed_over<report_verb>};
}

Verb submit_verb() {
  return {
      .name = "submit",
      .usage = "ROWS... -o NAME.attnbundle [OPTION...]",
      .summary = "one archive of rows, protocol, variants and their checks, for others to verify",
      .options = {{"output", 'o', "NAME.attnbundle", "the archive; needed"},
                  {"plugin", 0, "FILE",
                   "a source of a variant or task that the rows name: FILE.cc, FILE.h, FILE.py",
                   true},
                  {"statement", 0, "TEXT", "what these rows are, in a sentence"},
                  {"strip", 0, "",
                   "leave folders out of the run lines: of the command line and of names of files, "
                   "nothing else"},
                  {"key", 0, "FILE", "your own ssh key, which signs the archive"}},
      .max_words = 1000,
      .run = handed_over<submit_verb>,
      .loads_plugins = false};
}

Verb verify_verb() {
  return {.name = "verify",
          .usage = "NAME.attnbundle [OPTION...]",
          .summary =
              "checks an archive of submit and measures a sample of its cells anew; what it "
              "cannot catch: attnbench help bundles",
          .options = {{"sample", 0, "N", "cells to measure anew; default: 8; 0: none"},
                      {"longest", 0, "TIME",
                       "cells that are forecast to take longer are not drawn; default: 2m"},
                      {"ratios", 0, "",
                       "compare times across processors too, as ratios to exact attention"},
                      {"signers", 0, "FILE", "keys to trust, as ssh's allowed_signers lists them"},
                      {"nonce", 0, "HEX", "draw the same sample as the verification that said it"},
                      {"yes", 'y', "", "build and run what the archive brings without asking"},
                      {"json", 0, "", "the verdict as JSON"}},
          .max_words = 1,
          .run = handed_over<verify_verb>};
}

Verb pool_verb() {
  return {.name = "pool",
          .usage = "ROWS ROWS... [OPTION...]",
          .summary = "what several machines say together: ratios to exact attention, crossings",
          .options = {{"variant", 'v', "NAME", "these alone", true},
                      {"measure", 0, "NAME", "speed, memory, accuracy or fidelity; default: all"},
                      {"format", 0, "NAME", "text, json, csv or markdown; default: text"}},
          .max_words = 1000,
          .run = handed_over<pool_verb>};
}

Verb board_verb() {
  return {.name = "board",
          .usage = "FOLDER -o SITE [OPTION...]",
          .summary = "static pages from a folder of archives of submit",
          .options = {{"output", 'o', "FOLDER", "the pages; needed"},
                      {"signers", 0, "FILE", "keys to trust, as ssh's allowed_signers lists them"}},
          .max_words = 1,
          .run = handed_over<board_verb>};
}

Verb advise_verb() {
  return {.name = "advise",
          .usage = "[ROWS...] --length N [OPTION...]",
          .summary = "which variants the rows recommend for a length, a mode, a memory and a task",
          .options = {{"length", 0, "N", "tokens of a sequence; needed"},
                      {"mode", 0, "NAME", "forward, train or decode; default: forward"},
                      {"memory", 0, "SIZE", "the most that may be used: 64M, 2G"},
                      {"task", 0, "NAME",
                       "a task, or what it stands for: recall, copying, tracking, language"},
                      {"causal", 0, "", "attention that looks back alone"},
                      {"explain", 0, "", "the rows behind each line"},
                      {"json", 0, "", "as JSON"}},
          .max_words = 1000,
          .run = handed_over<advise_verb>};
}

Verb coverage_verb() {
  return {.name = "coverage",
          .usage = "[ROWS...] [OPTION...]",
          .summary = "variants and settings that no row has, and what each would cost",
          .options = {{"profile", 0, "NAME", "the settings asked for; default: standard"},
                      {"variant", 'v', "NAME", "these alone; default: all", true},
                      {"budget", 0, "TIME", "the cells that tell most within it: 2h, 45m"},
                      {"output", 'o', "FILE.toml", "a sweep of the chosen cells"},
                      {"json", 0, "", "as JSON"}},
          .max_words = 1000,
          .run = handed_over<coverage_verb>};
}

}  // namespace attn::cli
