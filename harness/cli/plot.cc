// attnbench plot: hands over to the wrapper script, which starts the Python that draws.
// The pictures need Python; the program itself does not.
#include "harness/cli/verbs.h"
#include "harness/cli/wrapper.h"

namespace attn::cli {
namespace {

int run_plot(const Arguments& arguments) { hand_to_python(plot_verb(), arguments); }

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
          .run = run_plot};
}

}  // namespace attn::cli
