// attnbench compare: what changed between two rows files, beyond chance.
#include "harness/compare/compare.h"

#include <fmt/ranges.h>

#include <set>

#include "harness/cli/rendered.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verbs.h"
#include "harness/compare/report.h"
#include "harness/plan/amounts.h"
#include "harness/plan/grammar.h"
#include "harness/run/protocol.h"

namespace attn::cli {
namespace {

std::vector<Measure> measures_from(const std::string& list) {
  std::vector<std::string> known;
  for (const Measure measure : kMeasures) known.push_back(name_of(measure));
  std::vector<Measure> measures;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string name = list.substr(begin, end - begin);
    const std::optional<Measure> measure = value_named<Measure>(name);
    ATTN_CHECK(measure, "--measure {}: unknown measure '{}'; expected some of {}", list, name,
               join(known));
    measures.push_back(*measure);
    begin = end + 1;
  }
  return measures;
}

// Pairs, and those that were left out, as lines of one file.
std::string csv_of(const Comparison& comparison) {
  std::vector<Json> lines = pairs_json(comparison);
  for (const LeftOut& pair : comparison.left_out)
    lines.push_back({{"measure", name_of(pair.measure)},
                     {"label", pair.label},
                     {"verdict", "not compared"},
                     {"basis", pair.reason}});
  return render_csv(lines);
}

std::string report(const Comparison& comparison, const std::string& format, bool color) {
  if (format == "json") return comparison_json(comparison).dump(2) + "\n";
  if (format == "csv") return csv_of(comparison);
  if (format == "junit") return junit_xml(comparison);
  return rendered(format, comparison_tables(comparison), color);
}

// "attnbench-1 (0123456789abcdef)", of each protocol once; what a run departs in is no other one.
std::string protocols_behind(const RowsFile& file) {
  std::set<std::string> names;
  for (Json protocol : file.protocols) {
    protocol["departs"] = Json::array();
    names.insert(protocol_words(protocol));
  }
  return fmt::to_string(fmt::join(names, ", "));
}

// Rows of earlier versions name none, which is no difference.
void warn_of_other_protocol(const RowsFile& before, const RowsFile& after) {
  const std::string old_names = protocols_behind(before), new_names = protocols_behind(after);
  if (!old_names.empty() && !new_names.empty() && old_names != new_names)
    warn(fmt::format("caution: OLD is by protocol {}, NEW by {}: a change may be of the rules\n",
                     old_names, new_names));
}

int run_compare(const Arguments& arguments) {
  const std::vector<std::string>& files = arguments.words();
  ATTN_CHECK(files.size() == 2, "compare needs two rows files, not {}; usage: attnbench compare {}",
             files.size(), compare_verb().usage);
  CompareRequest request{.across_machines = arguments.has("across-machines"),
                         .across_builds = arguments.has("across-builds")};
  if (arguments.has("threshold"))
    request.threshold = parse_share("threshold", arguments.get("threshold"));
  if (arguments.has("measure")) request.measures = measures_from(arguments.get("measure"));
  const std::string format =
      arguments.one_of("format", {"table", "md", "csv", "json", "latex", "junit"});
  const std::string color = arguments.one_of("color", {"auto", "always", "never"});
  const std::string output = arguments.get("output");

  const RowsFile before = read_rows_file(files[0]), after = read_rows_file(files[1]);
  const Comparison comparison = compare(before, after, request);
  if (comparison.pairs.empty() && comparison.left_out.empty()) {
    warn(fmt::format(
        "attnbench: nothing matched: '{}' ({} cells) and '{}' ({} cells) have no cell in common\n",
        files[0], comparison.before_only, files[1], comparison.after_only));
    return kNothingMatched;
  }
  const bool to_file = !output.empty() && output != kStdoutPath;
  deliver(report(comparison, format, !to_file && wants_color(color, Stream::out)), output, files);
  warn(summary_line(comparison) + "\n");
  warn_of_other_protocol(before, after);
  if (comparison.pairs.empty()) return kNothingMatched;
  if (comparison.has_regression()) return kRegression;
  return arguments.has("strict") && comparison.count(Judgement::undecided) > 0 ? kUndecided : kOk;
}

}  // namespace

Verb compare_verb() {
  return {
      .name = "compare",
      .usage = "OLD.jsonl NEW.jsonl [OPTION...]",
      .summary = "what changed between two rows files, beyond chance; exit 3: something got worse",
      .options = {{"threshold", 0, "SHARE",
                   "changes up to this are of no interest; 5%, 0.05; default 2%"},
                  {"measure", 0, "LIST", "speed,memory,accuracy,fidelity; default all"},
                  {"across-machines", 0, "", "of two machines: times as ratios to exact attention"},
                  {"across-builds", 0, "", "of two compilers or flags: compare times all the same"},
                  {"strict", 0, "", "exit 7 where something is undecided and nothing got worse"},
                  {"format", 0, "KIND", "table (default), md, csv, json, latex or junit"},
                  {"output", 'o', "FILE", "default: standard output"},
                  {"color", 0, "WHEN", "auto (default), always or never"}},
      .max_words = 2,
      .run = run_compare};
}

}  // namespace attn::cli
